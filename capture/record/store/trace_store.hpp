// The file of one session: takes batches of records; at any moment the .btr holds all whole chunks.
// One thread at a time: the writer's. traces/join has yet to join the file.
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
  /// Creates the file. Chunks are small (4096 records), since a kill loses the open one. While a
  /// reference to tables() is kept, the store must not be moved.
  [[nodiscard]] static Result<TraceStore> create(const std::string& path, RankId rank);

  [[nodiscard]] RecordTables& tables() { return tables_; }
  [[nodiscard]] Result<void> describe(const traces::format::RankDescription& description);
  /// Writes the table entries that the batch needs, then the batch; clears it even on a fault.
  [[nodiscard]] Result<void> append(RecordedBatch& batch);
  /// Writes pending records, however few.
  [[nodiscard]] Result<void> flush();
  [[nodiscard]] Result<void> finish(const CounterSet& counters);
  /// Bytes in the file, without pending records.
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
