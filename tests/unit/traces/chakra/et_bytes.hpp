// Chakra files byte by byte, from the schema's field numbers and the rules of protobuf's wire
// format: what the importer is checked against owes nothing to its own code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bubblesim::traces::testing {

inline std::string varint(std::uint64_t value) {
  std::string out;
  while (value >= 0x80) {
    out.push_back(static_cast<char>(0x80U | (value & 0x7fU)));
    value >>= 7U;
  }
  out.push_back(static_cast<char>(value));
  return out;
}

/// A field that is a number: wire type 0.
inline std::string number_field(unsigned field, std::uint64_t value) {
  return varint(field << 3U) + varint(value);
}

/// A field that has a length: wire type 2.
inline std::string bytes_field(unsigned field, std::string_view bytes) {
  return varint(field << 3U | 2U) + varint(bytes.size()) + std::string(bytes);
}

/// A message behind its length.
inline std::string framed(std::string_view message) {
  return varint(message.size()) + std::string(message);
}

/// An attribute; field 9 is int64_val, 27 bool_val.
inline std::string attribute(std::string_view name, std::uint64_t value, unsigned field = 9) {
  return bytes_field(10, bytes_field(1, name) + number_field(field, value));
}
inline std::string text_attribute(std::string_view name, std::string_view text) {
  return bytes_field(10, bytes_field(1, name) + bytes_field(29, text));
}

struct EtNode {
  std::uint64_t id = 0;
  std::string name;
  int type = 4;  ///< COMP_NODE
  bool cpu = false;
  std::uint64_t duration = 0;
  std::uint64_t start = 0;
  std::vector<std::uint64_t> data = {};
  std::vector<std::uint64_t> control = {};
  std::string more = {};  ///< fields, as above
};

inline std::string node_message(const EtNode& node) {
  std::string out = number_field(1, node.id) + bytes_field(2, node.name) +
                    number_field(3, static_cast<std::uint64_t>(node.type));
  for (const std::uint64_t id : node.control) out += number_field(4, id);
  for (const std::uint64_t id : node.data) out += number_field(5, id);
  if (node.start != 0) out += number_field(6, node.start);
  if (node.duration != 0) out += number_field(7, node.duration);
  return out + attribute("is_cpu_op", node.cpu ? 1 : 0, 27) + node.more;
}

inline std::string et_file(const std::vector<EtNode>& nodes) {
  std::string out = framed(bytes_field(1, "0.0.4"));
  for (const EtNode& node : nodes) out += framed(node_message(node));
  return out;
}

}  // namespace bubblesim::traces::testing
