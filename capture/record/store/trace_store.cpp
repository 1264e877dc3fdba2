#include "capture/record/store/trace_store.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace bubblesim::capture {
namespace {

constexpr std::uint32_t kChunkRecords = 4096;
/// The writer shares its cores with the job: zstd's level 3 takes a tenth to a half more time for
/// at most 4 % fewer bytes (tests/bench/README.md).
constexpr int kCompressionLevel = 1;

}  // namespace

TraceStore::TraceStore(traces::format::TraceWriter writer, RankId rank)
    : writer_(std::move(writer)), rank_(rank) {}

Result<TraceStore> TraceStore::create(const std::string& path, RankId rank) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      auto writer,
      traces::format::TraceWriter::create(
          path, {.chunk_records = kChunkRecords, .compression_level = kCompressionLevel}));
  return TraceStore(std::move(writer), rank);
}

Result<void> TraceStore::describe(const traces::format::RankDescription& description) {
  return writer_.describe(rank_, description);
}

template <class Record>
Result<void> TraceStore::write(const std::vector<Record>& records) {
  if (records.empty()) return {};
  return writer_.append(rank_, std::span<const Record>(records));
}

Result<void> TraceStore::write_tables() {
  const RecordTables::NewEntries fresh = tables_.take_new();
  BUBBLESIM_RETURN_IF_ERROR(write(fresh.names));
  BUBBLESIM_RETURN_IF_ERROR(write(fresh.shapes));
  BUBBLESIM_RETURN_IF_ERROR(write(fresh.threads));
  return write(fresh.streams);
}

Result<void> TraceStore::write(const RecordedBatch& batch) {
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

Result<void> TraceStore::append(RecordedBatch& batch) {
  const auto move_index = [this](auto& record) {
    if (record.collective != traces::kNone) record.collective += collectives_;
  };
  std::ranges::for_each(batch.notes, move_index);
  std::ranges::for_each(batch.ops, move_index);
  collectives_ += static_cast<std::uint32_t>(batch.collectives.size());
  Result<void> written = write(batch);
  batch.clear();
  return written;
}

Result<void> TraceStore::flush() {
  BUBBLESIM_RETURN_IF_ERROR(write_tables());
  return writer_.flush();
}

Result<void> TraceStore::finish(const CounterSet& counters) {
  BUBBLESIM_RETURN_IF_ERROR(flush());
  BUBBLESIM_RETURN_IF_ERROR(writer_.set_counters(rank_, counters));
  return writer_.finish();
}

}  // namespace bubblesim::capture
