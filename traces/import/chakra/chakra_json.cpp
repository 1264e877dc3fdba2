// The forms of Chakra files.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <chakra_et.pb.h>

#include "traces/import/chakra/chakra_node.hpp"
#include "traces/import/json_fields.hpp"
#include "traces/import/json_scan.hpp"

namespace bubblesim::traces::chakra {
namespace {

// The JSON forms: the feeder's (one object, "workload_graph" an array of nodes with "Id", "Name",
// "NodeType", "runtime") and the jsonizer's (the protobuf messages as JSON objects, one after the
// other: "id", "type", "durationMicros", "attr" with "int64Val"; 64-bit numbers as strings).

constexpr std::string_view kGraphKey = "\"workload_graph\"";

std::optional<std::uint64_t> number_of(const JsonValue& value) {
  if (value.text == "true") return 1;
  if (value.text == "false") return 0;
  if (const auto number = to_unsigned(value)) return number;
  const auto number = to_signed(value);
  if (!number) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

/// Scalars and strings of a flat array; nested values are passed over as text.
std::vector<JsonValue> elements_of(std::string_view array) {
  std::vector<JsonValue> out;
  std::size_t at = array.empty() ? 0 : 1;
  while (at < array.size()) {
    const char c = array[at];
    if (c == '"') {
      const std::size_t from = ++at;
      while (at < array.size() && array[at] != '"') at += array[at] == '\\' ? 2 : 1;
      at = std::min(at, array.size());
      out.push_back({JsonTextKind::kString, array.substr(from, at - from)});
      ++at;
    } else if (is_space(c) || c == ',' || c == '[' || c == ']') {
      ++at;
    } else {
      const std::size_t end = std::min(array.find_first_of(",] \n\r\t", at), array.size());
      out.push_back({JsonTextKind::kScalar, array.substr(at, end - at)});
      at = end;
    }
  }
  return out;
}

/// Nothing: an element is no number.
std::optional<std::vector<std::uint64_t>> numbers_of(std::string_view array) {
  std::vector<std::uint64_t> out;
  for (const JsonValue& element : elements_of(array)) {
    const auto number = number_of(element);
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

/// A value with the text that it borrows.
struct HeldValue {
  AttributeValue value;
  std::string text;
};

void hold(const JsonValue& json, HeldValue& out) {
  if (json.kind == JsonTextKind::kArray) {
    out.value.numbers = numbers_of(json.text);
    for (const JsonValue& element : elements_of(json.text)) {
      if (element.kind == JsonTextKind::kString) out.value.texts.push_back(unescape(element.text));
    }
    return;
  }
  out.value.number = number_of(json);
  if (json.kind != JsonTextKind::kString) return;
  out.text = unescape(json.text);
  out.value.text = out.text;
}

/// `{"name": "comm_size", "int64Val": "4096"}`, `{"name": ..., "boolList": {"values": [...]}}`, up
/// to one that is damaged.
template <class Apply>
void read_attributes(std::string_view array, Apply apply) {
  for (std::size_t at = array.find('{'); at != std::string_view::npos;) {
    std::string name;
    HeldValue held;
    const auto take = [&](std::string_view key, const JsonValue& json) {
      if (key == "name") {
        name = unescape(json.text);
      } else if (json.kind == JsonTextKind::kObject) {
        each_field(json.text, [&](std::string_view inner, const JsonValue& list) {
          if (inner == "values") hold(list, held);
        });
      } else if (key.ends_with("Val") || key.ends_with("_val")) {
        hold(json, held);
      }
    };
    const FieldReader fields = each_field(array.substr(at), take);
    if (!fields.complete()) return;
    apply(name, held.value);
    at = array.find('{', at + fields.consumed());
  }
}

std::int32_t type_of(const JsonValue& value) {
  if (const auto type = value_of<std::int32_t>(kNodeTypeNames, value.text)) return *type;
  const auto number = to_unsigned(value);
  return number && *number <= kCommCollNode ? static_cast<std::int32_t>(*number) : kInvalidNode;
}

bool is_any(std::string_view key, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, key) != names.end();
}

/// Makes a node of a JSON object.
class NodeReader {
 public:
  explicit NodeReader(File& file) : file_(file) {}

  void read(std::string_view object) {
    bool has_id = false;
    const auto field = [&](std::string_view key, const JsonValue& value) {
      if (is_any(key, {"id", "Id"})) {
        has_id = to_unsigned(value).has_value();
        node_.id = to_unsigned(value).value_or(0);
      } else if (!take(key, value)) {
        HeldValue held;
        hold(value, held);
        apply_attribute(key, held.value, node_, file_);
      }
    };
    const bool whole = each_field(object, field).complete();
    // Protobuf's JSON leaves out what is zero: a node without an id is node 0 where it has a type.
    if (!whole || (!has_id && node_.type == kInvalidNode)) {
      file_.trace.counters.add(kDamagedNodes);
    } else if (!times_fit_) {
      file_.trace.counters.add(kBadTimes);
    } else {
      file_.nodes.push_back(std::move(node_));
    }
  }

 private:
  bool take(std::string_view key, const JsonValue& value) {
    if (is_any(key, {"name", "Name"})) {
      node_.name = intern_name(unescape(value.text), file_);
    } else if (is_any(key, {"type", "NodeType"})) {
      node_.type = type_of(value);
    } else if (is_any(key, {"ctrlDeps", "ctrl_deps"})) {
      node_.control = ids(value);
    } else if (is_any(key, {"dataDeps", "data_deps"})) {
      node_.data = ids(value);
    } else if (is_any(key, {"runtime", "durationMicros", "duration_micros"})) {
      node_.duration_ns = time(value).value_or(0);
    } else if (is_any(key, {"startTimeMicros", "start_time_micros"})) {
      const auto start = time(value);
      if (start && *start != 0) node_.start_ns = start;
    } else if (key == "attr") {
      read_attributes(value.text, [this](std::string_view name, const AttributeValue& held) {
        apply_attribute(name, held, node_, file_);
      });
    } else if (key == "inputs") {
      each_field(value.text, [this](std::string_view input, const JsonValue& values) {
        if (input == "values" && node_.type == kMetadataNode) {
          read_groups(unescape(values.text), file_);
        }
      });
    } else {
      return key == "outputs";
    }
    return true;
  }

  std::vector<std::uint64_t> ids(const JsonValue& value) {
    if (value.kind == JsonTextKind::kArray) {
      if (auto numbers = numbers_of(value.text)) return std::move(*numbers);
    } else if (const auto number = to_unsigned(value)) {
      return {*number};
    }
    file_.trace.counters.add(kBadAttributes);
    return {};
  }

  std::optional<std::int64_t> time(const JsonValue& value) {
    const auto ns = microseconds_to_ns(value.text);
    if (!ns || ns->value < 0 || ns->value >= kTimeLimit) {
      times_fit_ = false;
      return std::nullopt;
    }
    return ns->value;
  }

  File& file_;
  ChakraNode node_;
  bool times_fit_ = true;
};

void read_metadata(std::string_view object, File& file) {
  each_field(object, [&file](std::string_view key, const JsonValue& value) {
    if (key == "version") file.version = unescape(value.text);
    if (key != "attr") return;
    read_attributes(value.text, [&file](std::string_view name, const AttributeValue& held) {
      apply_metadata(name, held, file);
    });
  });
}

/// Keys of the first object of a text, also of one that is cut.
std::vector<std::string_view> first_keys(std::string_view head) {
  std::vector<std::string_view> keys;
  const std::size_t start = head.find('{');
  if (start == std::string_view::npos) return keys;
  FieldReader fields(head.substr(start), StringRule::kStrict);
  std::string_view key;
  JsonValue value;
  while (fields.next(key, value)) keys.push_back(key);
  if (!fields.complete() && !key.empty()) keys.push_back(key);
  return keys;
}

bool has(const std::vector<std::string_view>& keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

bool is_metadata(const std::vector<std::string_view>& keys) {
  return std::ranges::all_of(keys, [](auto key) { return key == "version" || key == "attr"; });
}

bool is_node(const std::vector<std::string_view>& keys) {
  return has(keys, "type") && has(keys, "name") && (has(keys, "id") || has(keys, "attr"));
}

/// Moves the window behind `"workload_graph": [`. False: there is none.
bool enter_graph(TextWindow& window) {
  std::size_t found = window.text().find(kGraphKey);
  while (found == std::string_view::npos) {
    if (!window.more()) return false;
    found = window.text().find(kGraphKey);
  }
  window.advance(found + kGraphKey.size());
  for (const char want : {':', '['}) {
    if (!skip_space(window) || window.text().front() != want) return false;
    window.advance(1);
  }
  return true;
}

/// Reads objects up to `close` (0: the end of the text), commas between them or not.
template <class Read>
void read_objects(TextWindow& window, char close, CounterSet& counters, Read read) {
  while (skip_space(window)) {
    const char c = window.text().front();
    if (c == close && close != '\0') return;
    if (c == ',') {
      window.advance(1);
      continue;
    }
    const Scan scan = c == '{' ? scan_value(window) : Scan{ScanStatus::kDamaged, 0};
    if (scan.status != ScanStatus::kComplete) {
      counters.add(scan.status == ScanStatus::kTruncated ? kTruncated : kStreamBroken);
      return;
    }
    read(window.text().substr(0, scan.length));
    window.advance(scan.length);
  }
  if (close != '\0') counters.add(kTruncated);
}

}  // namespace

bool is_chakra_json(std::string_view head) {
  const auto keys = first_keys(head);
  if (keys.empty()) return false;
  return has(keys, "workload_graph") || is_metadata(keys) || is_node(keys);
}

void read_json(TextWindow& window, File& file) {
  static_cast<void>(skip_space(window));
  CounterSet& counters = file.trace.counters;
  const auto read_node = [&file](std::string_view object) { NodeReader(file).read(object); };
  if (has(first_keys(window.text()), "workload_graph")) {
    if (!enter_graph(window)) return counters.add(kStreamBroken);
    return read_objects(window, ']', counters, read_node);
  }
  bool first = true;
  read_objects(window, '\0', counters, [&](std::string_view object) {
    if (first && is_metadata(first_keys(object))) {
      read_metadata(object, file);
    } else {
      read_node(object);
    }
    first = false;
  });
}

namespace {

// The protobuf form: messages, each behind its length as a varint.

template <class List>
std::vector<std::uint64_t> numbers_of(const List& list) {
  std::vector<std::uint64_t> out;
  out.reserve(static_cast<std::size_t>(list.values_size()));
  for (const auto value : list.values()) out.push_back(static_cast<std::uint64_t>(value));
  return out;
}

/// A whole number written as floating point, as some generators do.
std::optional<std::uint64_t> whole(double value) {
  if (!(value >= 0) || value >= 0x1p63 || value != std::floor(value)) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

std::uint64_t bits(std::int64_t value) { return std::bit_cast<std::uint64_t>(value); }

AttributeValue value_of_lists(const chakra_et::Attribute& attribute) {
  using Wire = chakra_et::Attribute;
  AttributeValue out;
  switch (attribute.value_case()) {
    case Wire::kInt64List: out.numbers = numbers_of(attribute.int64_list()); break;
    case Wire::kUint32List: out.numbers = numbers_of(attribute.uint32_list()); break;
    case Wire::kUint64List: out.numbers = numbers_of(attribute.uint64_list()); break;
    case Wire::kBoolList: out.numbers = numbers_of(attribute.bool_list()); break;
    case Wire::kStringList:
      for (const std::string& text : attribute.string_list().values()) out.texts.push_back(text);
      break;
    default: break;
  }
  return out;
}

AttributeValue value_of_attribute(const chakra_et::Attribute& attribute) {
  using Wire = chakra_et::Attribute;
  AttributeValue out;
  switch (attribute.value_case()) {
    case Wire::kDoubleVal: out.number = whole(attribute.double_val()); break;
    case Wire::kFloatVal: out.number = whole(static_cast<double>(attribute.float_val())); break;
    case Wire::kInt32Val: out.number = bits(attribute.int32_val()); break;
    case Wire::kInt64Val: out.number = bits(attribute.int64_val()); break;
    case Wire::kUint32Val: out.number = attribute.uint32_val(); break;
    case Wire::kUint64Val: out.number = attribute.uint64_val(); break;
    case Wire::kSint32Val: out.number = bits(attribute.sint32_val()); break;
    case Wire::kSint64Val: out.number = bits(attribute.sint64_val()); break;
    case Wire::kFixed32Val: out.number = attribute.fixed32_val(); break;
    case Wire::kFixed64Val: out.number = attribute.fixed64_val(); break;
    case Wire::kSfixed32Val: out.number = bits(attribute.sfixed32_val()); break;
    case Wire::kSfixed64Val: out.number = bits(attribute.sfixed64_val()); break;
    case Wire::kBoolVal: out.number = attribute.bool_val() ? 1 : 0; break;
    case Wire::kStringVal: out.text = attribute.string_val(); break;
    default: return value_of_lists(attribute);
  }
  return out;
}

/// Adds a node to `file`; `message` gives the memory to read it into. False: the bytes are none.
bool read_node_message(std::string_view bytes, chakra_et::Node& message, File& file) {
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
  ChakraNode node;
  node.id = message.id();
  node.name = intern_name(message.name(), file);
  node.type = message.type();
  node.control.assign(message.ctrl_deps().begin(), message.ctrl_deps().end());
  node.data.assign(message.data_deps().begin(), message.data_deps().end());
  const auto start = micros_to_ns(message.start_time_micros());
  const auto duration = micros_to_ns(message.duration_micros());
  if (!start || !duration) {
    file.trace.counters.add(kBadTimes);
    return true;
  }
  if (*start != 0) node.start_ns = start;
  node.duration_ns = *duration;
  for (const auto& attribute : message.attr()) {
    apply_attribute(attribute.name(), value_of_attribute(attribute), node, file);
  }
  if (node.type == kMetadataNode) read_groups(message.inputs().values(), file);
  file.nodes.push_back(std::move(node));
  return true;
}

/// False: the bytes are not one.
bool read_metadata_message(std::string_view bytes, File& file) {
  chakra_et::GlobalMetadata message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
  file.version = message.version();
  for (const auto& attribute : message.attr()) {
    apply_metadata(attribute.name(), value_of_attribute(attribute), file);
  }
  return true;
}

constexpr std::size_t kLongestVarint = 10;
constexpr unsigned char kVersionTag = 0x0a;   // GlobalMetadata: field 1, with a length
constexpr unsigned char kAttributeTag = 0x12; // GlobalMetadata: field 2, with a length
constexpr unsigned char kIdTag = 0x08;        // Node: field 1, a varint
constexpr unsigned char kNameTag = 0x12;      // Node: field 2, with a length
constexpr unsigned char kTypeTag = 0x18;      // Node: field 3, of one without id and name

struct Varint {
  std::uint64_t value = 0;
  std::size_t length = 0;
};

/// Nothing: the bytes end inside it, or it is longer than a varint can be.
std::optional<Varint> varint_at(std::string_view bytes, std::size_t at) {
  Varint out;
  while (out.length < kLongestVarint && at + out.length < bytes.size()) {
    const auto byte = static_cast<unsigned char>(bytes[at + out.length]);
    out.value |= std::uint64_t{byte & 0x7fU} << (7 * out.length);
    ++out.length;
    if ((byte & 0x80U) == 0) return out;
  }
  return std::nullopt;
}

bool hold(TextWindow& window, std::size_t bytes) {
  while (window.text().size() < bytes) {
    if (!window.more()) return false;
  }
  return true;
}

bool is_tag(std::string_view head, std::size_t at, unsigned char first, unsigned char other) {
  const auto byte = static_cast<unsigned char>(head[at]);
  return byte == first || byte == other;
}

/// Takes the next message's bytes off the window. Nothing at the end, with what is wrong counted.
/// The bytes stay until the window is asked for more.
std::optional<std::string_view> next_message(TextWindow& window, std::size_t limit,
                                             CounterSet& counters) {
  static_cast<void>(hold(window, kLongestVarint));
  if (window.text().empty()) return std::nullopt;
  const auto length = varint_at(window.text(), 0);
  if (!length) {
    counters.add(window.text().size() < kLongestVarint ? kTruncated : kStreamBroken);
    return std::nullopt;
  }
  if (length->value > limit) {
    counters.add(kStreamBroken);
    return std::nullopt;
  }
  const auto size = static_cast<std::size_t>(length->value);
  if (!hold(window, length->length + size)) {
    counters.add(kTruncated);
    return std::nullopt;
  }
  const std::string_view bytes = window.text().substr(length->length, size);
  window.advance(length->length + size);
  return bytes;
}

}  // namespace

bool is_chakra_stream(std::string_view head) {
  const auto first = varint_at(head, 0);
  if (!first || first->value > std::numeric_limits<std::int32_t>::max()) return false;
  std::size_t at = first->length;
  const std::size_t end = at + static_cast<std::size_t>(first->value);
  while (at < std::min(end, head.size())) {
    if (!is_tag(head, at, kVersionTag, kAttributeTag)) return false;
    const auto length = varint_at(head, at + 1);
    if (!length) return at + 1 + kLongestVarint > head.size() && end > head.size();
    if (length->value > end - at) return false;
    at += 1 + length->length + static_cast<std::size_t>(length->value);
  }
  if (at > end) return false;
  const auto second = varint_at(head, at);
  if (!second) return at > 1 && at >= head.size();
  if (second->value < 2) return false;
  at += second->length;
  return at >= head.size() || is_tag(head, at, kIdTag, kNameTag) ||
         is_tag(head, at, kTypeTag, kTypeTag);
}

void read_stream(TextWindow& window, std::size_t limit, File& file) {
  limit = std::min<std::size_t>(limit, std::numeric_limits<std::int32_t>::max());
  CounterSet& counters = file.trace.counters;
  chakra_et::Node message;  // one for all: its memory is used again
  bool first = true;
  while (const auto bytes = next_message(window, limit, counters)) {
    const bool read = first ? read_metadata_message(*bytes, file)
                            : !bytes->empty() && read_node_message(*bytes, message, file);
    if (!read) counters.add(kDamagedNodes);
    first = false;
  }
}

}  // namespace bubblesim::traces::chakra
