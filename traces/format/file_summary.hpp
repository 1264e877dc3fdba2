// What a .btr file consists of, without decoding it: for `bubblesim inspect --chunks`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "traces/format/chunk_scanner.hpp"

namespace bubblesim::traces::format {

/// One chunk whose header is whole.
struct ChunkSummary {
  std::uint64_t offset = 0;
  std::uint32_t index = 0;
  std::string kind;  ///< chunk_kind_name, or "unknown 99"
  std::uint32_t rank = 0;
  std::uint32_t records = 0;
  std::uint64_t first_record = 0;
  std::uint32_t stored_bytes = 0;
  std::uint32_t raw_bytes = 0;
  ChunkState state = ChunkState::kWhole;
};

/// Sums over the whole chunks of one kind.
struct KindSummary {
  std::string kind;
  std::uint64_t chunks = 0;
  std::uint64_t records = 0;
  std::uint64_t stored_bytes = 0;  ///< with the chunk headers
  std::uint64_t raw_bytes = 0;
};

struct FileSummary {
  std::uint16_t major_version = 0;
  std::uint16_t minor_version = 0;
  std::uint64_t file_bytes = 0;
  std::vector<ChunkSummary> chunks;  ///< in file order
  std::vector<KindSummary> kinds;    ///< in order of the kinds' numbers
  CounterSet counters;
};

[[nodiscard]] Result<FileSummary> summarise_file(const std::string& path);

}  // namespace bubblesim::traces::format
