// Walks the chunks of a .btr file in order, past damaged parts.
//
// Rule of recovery (traces/format/FORMAT.md): a chunk header with a right checksum is trusted, so
// that a damaged payload is skipped whole; without such a header, the next one is searched byte by
// byte. Each byte is read at most twice, whatever the file holds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "traces/format/columns.hpp"
#include "traces/format/layout.hpp"

namespace bubblesim::traces::format {

// Random access to the bytes of a file through a window of bounded size, or to bytes in memory. It
// does not map the file into memory: a file that another process truncates during reading must not
// end this process.

class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// `bytes` bytes from `offset`, valid until the next call; fewer only if the source ends earlier
  /// or a read failed.
  [[nodiscard]] virtual ByteView view(std::uint64_t offset, std::size_t bytes) = 0;
  /// The first failed read, if any.
  [[nodiscard]] virtual std::optional<Error> fault() const { return std::nullopt; }
};

/// Refers to the bytes.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(ByteView bytes) : bytes_(bytes) {}
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] ByteView view(std::uint64_t offset, std::size_t bytes) override;

 private:
  ByteView bytes_;
};

/// A regular file. Its size is read once, when it is opened.
class FileSource final : public ByteSource {
 public:
  [[nodiscard]] static Result<std::unique_ptr<FileSource>> open(const std::string& path);
  ~FileSource() override;
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] ByteView view(std::uint64_t offset, std::size_t bytes) override;
  [[nodiscard]] std::optional<Error> fault() const override { return fault_; }

 private:
  FileSource(std::string path, int descriptor, std::uint64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  void load(std::uint64_t offset, std::size_t bytes);

  std::string path_;
  int descriptor_;
  std::uint64_t size_;
  std::vector<std::uint8_t> window_;
  std::uint64_t window_start_ = 0;
  std::size_t window_used_ = 0;
  std::optional<Error> fault_;
};

enum class ChunkState : std::uint8_t {
  kWhole,      ///< payload complete, checksum right
  kDamaged,    ///< payload complete, checksum wrong
  kCutOff,     ///< the file ends inside the payload
  kMisplaced,  ///< its index is not after the previous chunk's: a copy, not to be used
};

struct ScannedChunk {
  ChunkHeader header;
  std::uint64_t offset = 0;  ///< of the header in the file
  ChunkState state = ChunkState::kWhole;
  ByteView stored;  ///< the payload as stored, if whole; valid until next()
};

/// Reads and judges the file header. `name` is for the message.
[[nodiscard]] Result<FileHeader> read_file_header(ByteSource& source, const std::string& name);

class ChunkScanner {
 public:
  /// Refers to `source`, whose header was accepted.
  explicit ChunkScanner(ByteSource& source) : source_(source) {}

  /// The next chunk whose header is whole; nothing at the end of the file or after an end chunk.
  [[nodiscard]] std::optional<ScannedChunk> next();
  /// Counts the losses so far; complete once next() returned nothing.
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
  bool cut_in_chunk_ = false;  ///< the file ends inside the payload of the last header found
  bool unknown_tail_ = false;  ///< the file ends in bytes after the last header's chunk
};

}  // namespace bubblesim::traces::format
