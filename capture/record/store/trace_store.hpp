// The file of one session: batches of records in, a .btr that holds every whole chunk at any
// moment. One thread at a time: the writer's. What it writes is not joined (traces/join).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/record/store/record_tables.hpp"
#include "sim/base/result.hpp"
#include "traces/format/trace_writer.hpp"

namespace bubblesim::capture {

class TraceStore {
 public:
  /// Creates the file. Chunks are small (4096 records), since a kill loses the open one. Whoever
  /// keeps a reference to tables() must not move the store any more.
  [[nodiscard]] static Result<TraceStore> create(const std::string& path, RankId rank);

  [[nodiscard]] RecordTables& tables() { return tables_; }
  [[nodiscard]] Result<void> describe(const traces::format::RankDescription& description);
  /// Writes the batch, what its ids need first, and clears it, also where writing failed.
  [[nodiscard]] Result<void> append(RecordedBatch& batch);
  /// Writes what is pending, however little.
  [[nodiscard]] Result<void> flush();
  [[nodiscard]] Result<void> finish(const CounterSet& counters);
  /// Bytes in the file; what is pending is not among them.
  [[nodiscard]] std::uint64_t bytes_written() const { return writer_.bytes_written(); }
  [[nodiscard]] int descriptor() const { return writer_.descriptor(); }

 private:
  TraceStore(traces::format::TraceWriter writer, RankId rank);
  [[nodiscard]] Result<void> write_tables();
  [[nodiscard]] Result<void> write(const RecordedBatch& batch);
  template <class Record>
  [[nodiscard]] Result<void> write(const std::vector<Record>& records);

  traces::format::TraceWriter writer_;
  RecordTables tables_;
  RankId rank_;
  std::uint32_t collectives_ = 0;
};

}  // namespace bubblesim::capture
