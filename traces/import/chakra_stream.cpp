// The protobuf form: messages, each behind its length as a varint.
#include <algorithm>
#include <bit>
#include <chakra_et.pb.h>
#include <cmath>
#include <limits>
#include <optional>

#include "traces/import/chakra_node.hpp"

namespace bubblesim::traces::chakra {
namespace {

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

}  // namespace

NodeMessageReader::NodeMessageReader() : message_(std::make_unique<chakra_et::Node>()) {}
NodeMessageReader::~NodeMessageReader() = default;

bool NodeMessageReader::read(std::string_view bytes, File& file) {
  chakra_et::Node& message = *message_;
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

bool read_metadata_message(std::string_view bytes, File& file) {
  chakra_et::GlobalMetadata message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
  file.version = message.version();
  for (const auto& attribute : message.attr()) {
    apply_metadata(attribute.name(), value_of_attribute(attribute), file);
  }
  return true;
}

namespace {

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
  NodeMessageReader nodes;
  bool first = true;
  while (const auto bytes = next_message(window, limit, counters)) {
    const bool read = first ? read_metadata_message(*bytes, file)
                            : !bytes->empty() && nodes.read(*bytes, file);
    if (!read) counters.add(kDamagedNodes);
    first = false;
  }
}

}  // namespace bubblesim::traces::chakra
