// Chakra files as a stream of protobuf messages, each behind its length as a varint. Decoded here,
// by the field numbers of chakra_et.proto: protobuf's own objects took most of the time of reading.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/import/chakra_node.hpp"

namespace bubblesim::traces::chakra {
namespace {

constexpr std::size_t kLongestVarint = 10;
constexpr std::size_t kLongestShortVarint = 5;  // of tags and lengths

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

/// Wire types.
enum class Wire : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// The fields of a message, in its order. Groups count as damage: the schema has none.
class WireFields {
 public:
  explicit WireFields(std::string_view message)
      : at_(message.data()), end_(message.data() + message.size()) {}

  /// False at the end of the message, or where it is damaged.
  bool next() {
    if (at_ == end_) return false;
    std::uint64_t tag = 0;
    complete_ = take_varint(tag, kLongestShortVarint);
    number = static_cast<std::uint32_t>(tag) >> 3U;
    wire = static_cast<Wire>(tag & 7U);
    complete_ = complete_ && number != 0 && take_value();
    return complete_;
  }
  /// Whether the message is not damaged, as far as it was read.
  [[nodiscard]] bool complete() const { return complete_; }
  [[nodiscard]] bool is(std::uint32_t wanted, Wire with) const {
    return number == wanted && wire == with;
  }

  std::uint32_t number = 0;
  Wire wire = Wire::kVarint;
  std::uint64_t value = 0;   ///< of a number
  std::string_view bytes;    ///< kBytes

 private:
  bool take_value() {
    switch (wire) {
      case Wire::kVarint: return take_varint(value, kLongestVarint);
      case Wire::kFixed64: return take_fixed(8);
      case Wire::kFixed32: return take_fixed(4);
      case Wire::kBytes: break;
      default: return false;
    }
    std::uint64_t length = 0;
    if (!take_varint(length, kLongestShortVarint) || length > left()) return false;
    bytes = {at_, static_cast<std::size_t>(length)};
    at_ += length;
    return true;
  }

  // Most have one byte.
  bool take_varint(std::uint64_t& out, std::size_t longest) {
    if (at_ == end_ || (byte_at(0) & 0x80U) != 0) return take_long_varint(out, longest);
    out = byte_at(0);
    ++at_;
    return true;
  }

  bool take_long_varint(std::uint64_t& out, std::size_t longest) {
    out = 0;
    longest = std::min(longest, left());
    for (std::size_t i = 0; i < longest; ++i) {
      out |= (byte_at(i) & 0x7fU) << (7 * i);
      if ((byte_at(i) & 0x80U) != 0) continue;
      at_ += i + 1;
      return true;
    }
    return false;
  }

  // Little-endian.
  bool take_fixed(std::size_t size) {
    if (left() < size) return false;
    value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8U | byte_at(i);
    at_ += size;
    return true;
  }

  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  [[nodiscard]] std::uint64_t byte_at(std::size_t i) const {
    return static_cast<unsigned char>(at_[i]);
  }

  const char* at_;
  const char* end_;
  bool complete_ = true;
};

/// Appends the numbers of a packed list. False: damaged.
bool take_packed(std::string_view bytes, std::vector<std::uint64_t>& out) {
  for (std::size_t at = 0; at < bytes.size();) {
    const auto number = varint_at(bytes, at);
    if (!number) return false;
    out.push_back(number->value);
    at += number->length;
  }
  return true;
}

/// A whole number written as floating point, as some generators do.
std::optional<std::uint64_t> whole(double value) {
  if (!(value >= 0) || value >= 0x1p63 || value != std::floor(value)) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

std::uint64_t extended(std::uint64_t low) {
  return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(low)});
}
std::uint64_t zigzag(std::uint64_t value) { return value >> 1U ^ (~(value & 1U) + 1); }

constexpr std::uint32_t tag_of(std::uint32_t number, Wire wire) {
  return 8 * number + static_cast<std::uint32_t>(wire);
}

/// Takes the value of an Attribute's field that is a number; nothing: it is not a whole one. False:
/// the field is something else.
bool take_number(const WireFields& field, std::optional<std::uint64_t>& out) {
  const auto low = static_cast<std::uint32_t>(field.value);
  switch (tag_of(field.number, field.wire)) {
    case tag_of(3, Wire::kFixed64): out = whole(std::bit_cast<double>(field.value)); break;
    case tag_of(5, Wire::kFixed32):
      out = whole(static_cast<double>(std::bit_cast<float>(low)));
      break;
    case tag_of(7, Wire::kVarint):    // int32
    case tag_of(23, Wire::kFixed32):  // sfixed32
      out = extended(low);
      break;
    case tag_of(9, Wire::kVarint):    // int64
    case tag_of(13, Wire::kVarint):   // uint64
    case tag_of(21, Wire::kFixed64):  // fixed64
    case tag_of(25, Wire::kFixed64):  // sfixed64
      out = field.value;
      break;
    case tag_of(11, Wire::kVarint):   // uint32
    case tag_of(19, Wire::kFixed32):  // fixed32
      out = low;
      break;
    case tag_of(15, Wire::kVarint): out = extended(zigzag(low)); break;       // sint32
    case tag_of(17, Wire::kVarint): out = zigzag(field.value); break;         // sint64
    case tag_of(27, Wire::kVarint): out = field.value != 0 ? 1U : 0U; break;  // bool
    default: return false;
  }
  return true;
}

constexpr std::uint32_t kInt64List = 10;
constexpr std::uint32_t kUint32List = 12;
constexpr std::uint32_t kUint64List = 14;
constexpr std::uint32_t kBoolList = 28;
constexpr std::uint32_t kString = 29;
constexpr std::uint32_t kStringList = 30;

bool is_list(std::uint32_t number) {
  return number == kInt64List || number == kUint32List || number == kUint64List ||
         number == kBoolList || number == kStringList;
}

/// Appends a list message to the value. False: damaged.
bool take_list(std::uint32_t number, std::string_view message, AttributeValue& out) {
  if (number != kStringList && !out.numbers) out.numbers.emplace();
  WireFields fields(message);
  while (fields.next()) {
    if (fields.number != 1) continue;
    if (number == kStringList) {
      if (fields.wire == Wire::kBytes) out.texts.emplace_back(fields.bytes);
    } else if (fields.wire == Wire::kVarint) {
      out.numbers->push_back(fields.value);
    } else if (fields.wire == Wire::kBytes && !take_packed(fields.bytes, *out.numbers)) {
      return false;
    }
  }
  if (number == kUint32List || number == kBoolList) {
    for (std::uint64_t& value : *out.numbers) {
      value = number == kBoolList ? std::uint64_t{value != 0} : static_cast<std::uint32_t>(value);
    }
  }
  return fields.complete();
}

struct NamedValue {
  std::string_view name;
  AttributeValue value;
};

/// The last value counts; lists of one type, one after the other, are one. False: damaged.
bool read_named_value(std::string_view message, NamedValue& out) {
  std::uint32_t from = 0;  // whose field the value is; 0: none yet
  WireFields fields(message);
  while (fields.next()) {
    if (fields.is(1, Wire::kBytes)) {
      out.name = fields.bytes;
      continue;
    }
    std::optional<std::uint64_t> number;
    const bool list = fields.wire == Wire::kBytes && is_list(fields.number);
    const bool text = fields.is(kString, Wire::kBytes);
    if (!list && !text && !take_number(fields, number)) continue;
    const std::uint32_t before = std::exchange(from, fields.number);
    if (before != 0 && !(list && before == from)) out.value = {};
    if (list && !take_list(fields.number, fields.bytes, out.value)) return false;
    if (text) out.value.text = fields.bytes;
    if (number) out.value.number = number;
  }
  return fields.complete();
}

/// Reads messages, one after another, into the same memory. What a message says is applied only
/// once all of it has been read.
class MessageReader {
 public:
  explicit MessageReader(File& file) : file_(file) {}

  /// Adds a Node to the file. False: the bytes are not one.
  [[nodiscard]] bool read_node(std::string_view bytes) {
    ChakraNode node;
    if (!read_fields(bytes, node)) return false;
    node.name = intern_name(name_, file_);
    const auto start = micros_to_ns(start_);
    const auto duration = micros_to_ns(duration_);
    if (!start || !duration) {
      file_.trace.counters.add(kBadTimes);
      return true;
    }
    if (*start != 0) node.start_ns = start;
    node.duration_ns = *duration;
    for (const NamedValue& attribute : attributes_) {
      apply_attribute(attribute.name, attribute.value, node, file_);
    }
    if (node.type == kMetadataNode) read_groups(input_values_, file_);
    file_.nodes.push_back(std::move(node));
    return true;
  }

  /// False: the bytes are not a GlobalMetadata.
  [[nodiscard]] bool read_metadata(std::string_view bytes) {
    attributes_.clear();
    std::string_view version;
    WireFields fields(bytes);
    while (fields.next()) {
      if (fields.is(1, Wire::kBytes)) version = fields.bytes;
      if (fields.is(2, Wire::kBytes) && !add_attribute(fields.bytes)) return false;
    }
    if (!fields.complete()) return false;
    file_.version = version;
    for (const NamedValue& attribute : attributes_) {
      apply_metadata(attribute.name, attribute.value, file_);
    }
    return true;
  }

 private:
  bool add_attribute(std::string_view message) {
    return read_named_value(message, attributes_.emplace_back());
  }

  bool read_inputs(std::string_view message) {
    WireFields fields(message);
    while (fields.next()) {
      if (fields.is(1, Wire::kBytes)) input_values_ = fields.bytes;
    }
    return fields.complete();
  }

  bool read_fields(std::string_view bytes, ChakraNode& node) {
    start_ = duration_ = 0;
    name_ = input_values_ = {};
    attributes_.clear();
    WireFields fields(bytes);
    while (fields.next()) {
      if (!take(fields, node)) return false;
    }
    return fields.complete();
  }

  /// Fields with another wire type than the schema's are passed over, as protobuf does.
  bool take(const WireFields& field, ChakraNode& node) {
    switch (tag_of(field.number, field.wire)) {
      case tag_of(1, Wire::kVarint): node.id = field.value; break;
      case tag_of(2, Wire::kBytes): name_ = field.bytes; break;
      case tag_of(3, Wire::kVarint): node.type = static_cast<std::int32_t>(field.value); break;
      case tag_of(4, Wire::kVarint): node.control.push_back(field.value); break;
      case tag_of(4, Wire::kBytes): return take_packed(field.bytes, node.control);
      case tag_of(5, Wire::kVarint): node.data.push_back(field.value); break;
      case tag_of(5, Wire::kBytes): return take_packed(field.bytes, node.data);
      case tag_of(6, Wire::kVarint): start_ = field.value; break;
      case tag_of(7, Wire::kVarint): duration_ = field.value; break;
      case tag_of(8, Wire::kBytes): return read_inputs(field.bytes);
      case tag_of(10, Wire::kBytes): return add_attribute(field.bytes);
      default: break;
    }
    return true;
  }

  File& file_;
  std::uint64_t start_ = 0;     ///< us
  std::uint64_t duration_ = 0;  ///< us
  std::string_view name_, input_values_;
  std::vector<NamedValue> attributes_;
};

constexpr unsigned char kVersionTag = 0x0a;   // GlobalMetadata: field 1, with a length
constexpr unsigned char kAttributeTag = 0x12; // GlobalMetadata: field 2, with a length
constexpr unsigned char kIdTag = 0x08;        // Node: field 1, a varint
constexpr unsigned char kNameTag = 0x12;      // Node: field 2, with a length
constexpr unsigned char kTypeTag = 0x18;      // Node: field 3, of one without id and name

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
  MessageReader reader(file);
  bool first = true;
  while (const auto bytes = next_message(window, limit, counters)) {
    const bool read = first ? reader.read_metadata(*bytes)
                            : !bytes->empty() && reader.read_node(*bytes);
    if (!read) counters.add(kDamagedNodes);
    first = false;
  }
}

}  // namespace bubblesim::traces::chakra
