#include "traces/import/chakra_messages.hpp"

#include <bit>
#include <chakra_et.pb.h>
#include <cmath>

#include "traces/import/chakra_counters.hpp"

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

}  // namespace bubblesim::traces::chakra
