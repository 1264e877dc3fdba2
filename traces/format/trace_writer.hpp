// Writes a .btr file (traces/format/FORMAT.md), record by record or a whole job at once.
//
// Chunks are written whole and in place, each with one write: a killed writer leaves a file whose
// chunks so far can be read. One thread at a time. After a failed write, every later call returns
// its fault.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "sim/base/ids.hpp"
#include "sim/base/result.hpp"
#include "traces/format/schema.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::format {

struct WriterOptions {
  std::uint32_t chunk_records = 16384;     ///< a chunk is written when it has this many records
  std::uint32_t chunk_bytes = 1U << 20U;   ///< or this many bytes of text and lists
  int compression_level = 3;               ///< of zstd
  unsigned rights = 0644;                  ///< of a new file, less the user's mask
  bool anew = false;                       ///< replace the file, as open_new_file does
};

/// Ids in records are positions in the order of append: the first name appended for a rank is its
/// NameId{0}, and so on for shapes, threads, streams, host calls, device operations, collectives.
/// Names, shapes, threads and streams are appended before records that refer to them.
class TraceWriter {
 public:
  /// Creates or empties the file and writes its header.
  [[nodiscard]] static Result<TraceWriter> create(const std::string& path,
                                                  const WriterOptions& options = {});
  TraceWriter(TraceWriter&&) noexcept;
  TraceWriter& operator=(TraceWriter&&) noexcept;
  /// Without finish(), pending records are lost and readers report a missing end.
  ~TraceWriter();

  /// Writes at once. A later description or set of counters of a rank replaces the earlier.
  [[nodiscard]] Result<void> describe(RankId rank, const RankDescription& description);
  [[nodiscard]] Result<void> set_counters(RankId rank, const CounterSet& counters);

  /// `Record`: any of those that RankTrace lists, and NameRecord and LaunchShape.
  template <class Record>
  [[nodiscard]] Result<void> append(RankId rank, std::span<const Record> records);

  /// Writes all pending records, in chunks however small. Bounds the loss if the process is killed.
  [[nodiscard]] Result<void> flush();
  /// Flushes, writes the end chunk and closes the file. Nothing may be called after it.
  [[nodiscard]] Result<void> finish();
  /// Bytes in the file so far.
  [[nodiscard]] std::uint64_t bytes_written() const;
  /// The open file's, for a forked child to close; -1: closed.
  [[nodiscard]] int descriptor() const;

 private:
  class State;
  explicit TraceWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Writes by the rule of output_target: beside the file, then renamed; devices and pipes in place.
/// Ranks must be in rising order. The same job gives the same bytes (with the same zstd library).
[[nodiscard]] Result<void> write_job(const std::string& path, const JobTrace& job,
                                     const WriterOptions& options = {});

}  // namespace bubblesim::traces::format
