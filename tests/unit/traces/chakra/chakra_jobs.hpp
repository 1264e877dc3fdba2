// Chakra files byte by byte, from the schema's field numbers and the rules of protobuf's wire
// format: tests check the importer against them, so they share no code with it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
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

/// A field with a number: wire type 0.
inline std::string number_field(unsigned field, std::uint64_t value) {
  return varint(field << 3U) + varint(value);
}

/// A field with bytes behind their length: wire type 2.
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

// Jobs as Chakra files without starts, as ASTRA-sim's users have them. Their times have closed
// forms.

inline constexpr int kComp = 4;
inline constexpr int kSend = 5;
inline constexpr int kRecv = 6;
inline constexpr int kColl = 7;

/// One file a rank, `FOLDER/NAME.RANK.et`.
inline std::vector<std::filesystem::path> write_job(const std::string& folder,
                                                    const std::string& name,
                                                    const std::vector<std::vector<EtNode>>& ranks) {
  std::vector<std::filesystem::path> paths;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    paths.push_back(folder + "/" + name + "." + std::to_string(rank) + ".et");
    std::ofstream(paths.back(), std::ios::binary) << et_file(ranks[rank]);
  }
  return paths;
}

/// Data parallel: each rank computes, then all meet in an all-reduce; `steps` times. Step i of
/// rank r computes for 100 + (7 r + 13 i) mod 10 us, so some rank of ten or more always needs 109;
/// the all-reduce takes 50. Closed form: steps x (109 + 50) us.
inline std::vector<std::vector<EtNode>> data_parallel(std::uint32_t ranks, std::uint32_t steps) {
  std::vector<std::vector<EtNode>> job(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    for (std::uint32_t i = 0; i < steps; ++i) {
      std::vector<std::uint64_t> before;
      if (i > 0) before.push_back(2 * i - 1);
      job[r].push_back({.id = 2 * i, .name = "gemm", .type = kComp,
                        .duration = 100 + (7 * r + 13 * i) % 10, .data = before});
      job[r].push_back({.id = 2 * i + 1, .name = "all_reduce", .type = kColl, .duration = 50,
                        .data = {2 * i},
                        .more = attribute("comm_type", 0) + attribute("comm_size", 4096)});
    }
  }
  return job;
}

/// A pipeline of `stages` ranks and `batches` micro-batches: 10 us forward, 20 us backward, 3 us a
/// transfer. Transfers of both directions overlap with other work. No stage begins a backward pass
/// before its forward one. Closed form: (batches + stages - 1) x 30 + 2 x (stages - 1) x 3 us.
inline std::vector<std::vector<EtNode>> pipeline(std::uint32_t stages, std::uint32_t batches) {
  std::vector<std::vector<EtNode>> job(stages);
  const auto to = [](std::uint32_t peer) { return attribute("comm_dst", peer); };
  const auto from = [](std::uint32_t peer) { return attribute("comm_src", peer); };
  for (std::uint32_t s = 0; s < stages; ++s) {
    const bool first = s == 0;
    const bool last = s + 1 == stages;
    // Ids of micro-batch b: 10 b to 10 b + 2 forward, 10,000 higher backward.
    for (std::uint64_t b = 0; b < batches; ++b) {
      const std::uint64_t f = 10 * b;
      const std::uint64_t g = 10'000 + 10 * b;
      if (!first) {
        job[s].push_back({.id = f, .name = "recv", .type = kRecv, .duration = 3,
                          .more = from(s - 1)});
      }
      job[s].push_back({.id = f + 1, .name = "forward", .type = kComp, .duration = 10,
                        .data = first ? std::vector<std::uint64_t>{} : std::vector{f}});
      if (!last) {
        job[s].push_back({.id = f + 2, .name = "send", .type = kSend, .duration = 3,
                          .data = {f + 1}, .more = to(s + 1)});
        job[s].push_back({.id = g, .name = "recv", .type = kRecv, .duration = 3,
                          .more = from(s + 1)});
      }
      std::vector<std::uint64_t> before{f + 1};
      if (!last) before.push_back(g);
      job[s].push_back({.id = g + 1, .name = "backward", .type = kComp, .duration = 20,
                        .data = before});
      if (!first) {
        job[s].push_back({.id = g + 2, .name = "send", .type = kSend, .duration = 3,
                          .data = {g + 1}, .more = to(s - 1)});
      }
    }
  }
  return job;
}

/// A ring, as ASTRA-sim's own collectives are written: in each step a rank sends to the next one,
/// then receives from the one before it, then computes for 7 us; sends and receives take no time.
/// Closed form: steps x 7 us.
inline std::vector<std::vector<EtNode>> ring(std::uint32_t ranks, std::uint32_t steps) {
  std::vector<std::vector<EtNode>> job(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    for (std::uint64_t i = 0; i < 3 * std::uint64_t{steps}; i += 3) {
      const std::vector<std::uint64_t> before =
          i > 0 ? std::vector{i - 1} : std::vector<std::uint64_t>{};
      job[r].push_back({.id = i, .name = "send", .type = kSend, .data = before,
                        .more = attribute("comm_dst", (r + 1) % ranks)});
      job[r].push_back({.id = i + 1, .name = "recv", .type = kRecv, .data = {i},
                        .more = attribute("comm_src", (r + ranks - 1) % ranks)});
      job[r].push_back({.id = i + 2, .name = "gemm", .type = kComp, .duration = 7,
                        .data = {i + 1}});
    }
  }
  return job;
}

}  // namespace bubblesim::traces::testing
