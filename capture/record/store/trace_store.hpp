// The file of one session: takes batches of records; at any moment the .btr holds all whole chunks.
// One thread at a time: the writer's. traces/join has yet to join the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capture/record/store/record_tables.hpp"
#include "sim/base/result.hpp"
#include "traces/format/trace_writer.hpp"

namespace bubblesim::capture {

class TraceStore {
 public:
  /// Creates the file. Chunks are small (4096 records), since a kill loses the open one. While a
  /// reference to tables() is kept, the store must not be moved.
  [[nodiscard]] static Result<TraceStore> create(const std::string& path, RankId rank) {
    BUBBLESIM_ASSIGN_OR_RETURN(auto writer, traces::format::TraceWriter::create(
                                                path, {.chunk_records = kChunkRecords,
                                                       .compression_level = kCompressionLevel}));
    return TraceStore(std::move(writer), rank);
  }

  [[nodiscard]] RecordTables& tables() { return tables_; }
  [[nodiscard]] Result<void> describe(const traces::format::RankDescription& description) {
    return writer_.describe(rank_, description);
  }
  /// Writes the table entries that the batch needs, then the batch; clears it even on a fault.
  [[nodiscard]] Result<void> append(RecordedBatch& batch) {
    const auto move_index = [this](auto& record) {
      if (record.collective != traces::kNone) record.collective += collectives_;
    };
    for (auto& note : batch.notes) move_index(note);
    for (auto& op : batch.ops) move_index(op);
    collectives_ += static_cast<std::uint32_t>(batch.collectives.size());
    Result<void> written = write(batch);
    batch.clear();
    return written;
  }
  /// Writes pending records, however few.
  [[nodiscard]] Result<void> flush() {
    BUBBLESIM_RETURN_IF_ERROR(write_tables());
    return writer_.flush();
  }
  [[nodiscard]] Result<void> finish(const CounterSet& counters) {
    BUBBLESIM_RETURN_IF_ERROR(flush());
    BUBBLESIM_RETURN_IF_ERROR(writer_.set_counters(rank_, counters));
    return writer_.finish();
  }
  /// Bytes in the file, without pending records.
  [[nodiscard]] std::uint64_t bytes_written() const { return writer_.bytes_written(); }
  [[nodiscard]] int descriptor() const { return writer_.descriptor(); }

 private:
  static constexpr std::uint32_t kChunkRecords = 4096;
  /// The writer shares its cores with the job: zstd's level 3 takes a tenth to a half more time for
  /// at most 4 % fewer bytes (tests/bench/README.md).
  static constexpr int kCompressionLevel = 1;

  TraceStore(traces::format::TraceWriter writer, RankId rank)
      : writer_(std::move(writer)), rank_(rank) {}
  [[nodiscard]] Result<void> write_tables() {
    const RecordTables::NewEntries fresh = tables_.take_new();
    BUBBLESIM_RETURN_IF_ERROR(write(fresh.names));
    BUBBLESIM_RETURN_IF_ERROR(write(fresh.shapes));
    BUBBLESIM_RETURN_IF_ERROR(write(fresh.threads));
    return write(fresh.streams);
  }
  [[nodiscard]] Result<void> write(const RecordedBatch& batch) {
    BUBBLESIM_RETURN_IF_ERROR(write_tables());
    BUBBLESIM_RETURN_IF_ERROR(write(batch.calls));
    BUBBLESIM_RETURN_IF_ERROR(write(batch.ops));
    BUBBLESIM_RETURN_IF_ERROR(write(batch.syncs));
    BUBBLESIM_RETURN_IF_ERROR(write(batch.collectives));
    BUBBLESIM_RETURN_IF_ERROR(write(batch.notes));
    BUBBLESIM_RETURN_IF_ERROR(write(batch.markers));
    BUBBLESIM_RETURN_IF_ERROR(write(batch.memory));
    BUBBLESIM_RETURN_IF_ERROR(write(batch.stalls));
    return write(batch.clocks);
  }
  template <class Record>
  [[nodiscard]] Result<void> write(const std::vector<Record>& records) {
    if (records.empty()) return {};
    return writer_.append(rank_, std::span<const Record>(records));
  }

  traces::format::TraceWriter writer_;
  RecordTables tables_;
  RankId rank_;
  std::uint32_t collectives_ = 0;
};

}  // namespace bubblesim::capture
