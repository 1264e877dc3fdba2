// Walks the chunks of a .btr file in order, past whatever is damaged.
//
// Rule of recovery (traces/format/FORMAT.md): a chunk header with a right checksum is believed, so
// a damaged payload is skipped whole; where no such header stands, the next one is searched byte
// by byte. Each byte is looked at twice at most, whatever the file holds.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/counters.hpp"
#include "traces/format/byte_source.hpp"
#include "traces/format/layout.hpp"

namespace bubblesim::traces::format {

enum class ChunkState : std::uint8_t {
  kWhole,      ///< payload there, checksum right
  kDamaged,    ///< payload there, checksum wrong
  kCutOff,     ///< the file ends inside the payload
  kMisplaced,  ///< its index is not after that of the chunk before: a copy; not to be used
};

struct ScannedChunk {
  ChunkHeader header;
  std::uint64_t offset = 0;  ///< of the header in the file
  ChunkState state = ChunkState::kWhole;
  ByteView stored;  ///< the payload as stored, if whole; good until next()
};

/// Reads and judges the file header. `name` is for the message.
[[nodiscard]] Result<FileHeader> read_file_header(ByteSource& source, const std::string& name);

class ChunkScanner {
 public:
  /// Borrows `source`, whose header was accepted.
  explicit ChunkScanner(ByteSource& source) : source_(source) {}

  /// The next chunk whose header is whole; nothing at the end of the file or after an end chunk.
  [[nodiscard]] std::optional<ScannedChunk> next();
  /// What was lost on the way; complete once next() returned nothing.
  void count(CounterSet& counters) const;

 private:
  [[nodiscard]] std::optional<ChunkHeader> header_at(std::uint64_t offset);
  void skip_to_header();
  [[nodiscard]] ScannedChunk take(const ChunkHeader& header);

  ByteSource& source_;
  std::uint64_t offset_ = kFileHeaderBytes;
  std::uint64_t next_index_ = 0;
  std::uint64_t whole_ = 0;
  std::uint64_t bytes_lost_ = 0;
  std::uint64_t bytes_after_end_ = 0;
  std::uint64_t misplaced_ = 0;
  bool ended_ = false;         ///< an end chunk was met
  bool cut_in_chunk_ = false;  ///< the last header met lost its payload to the end of the file
  bool unknown_tail_ = false;  ///< the file ends in bytes after the last header's chunk
};

}  // namespace bubblesim::traces::format
