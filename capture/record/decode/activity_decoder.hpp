// Turns a buffer of CUPTI activity records into trace records.
//
// Records are read as prefixes whose layout no CUPTI from 11 to 13 has changed
// (capture/record/cupti/abi.hpp); the stride comes from CUPTI. capture/README.md says what each
// kind becomes; dropped, guessed and unknown records are counted (activity_decoder.cpp). One thread
// at a time: the writer's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "capture/record/cupti/api.hpp"
#include "capture/record/decode/cupti_names.hpp"
#include "capture/record/decode/known_devices.hpp"
#include "capture/record/store/record_tables.hpp"
#include "sim/base/counters.hpp"
#include "traces/trace.hpp"

namespace bubblesim::capture {

/// Set in SyncRecord::event where only the event is known, not which of its recordings: event and
/// recording numbers must not collide.
inline constexpr std::uint64_t kEventOnly = std::uint64_t{1} << 63U;

class ActivityDecoder {
 public:
  /// Both outlive the decoder and stay where they are.
  ActivityDecoder(const CuptiApi& api, RecordTables& tables);

  /// Appends the records in the first `valid` bytes to `batch`.
  void decode(std::uint8_t* buffer, std::size_t valid, RecordedBatch& batch);

  /// Appends `sync` as if it were a synchronisation record of CUPTI's.
  void take_value(traces::SyncRecord sync, std::uint32_t context, std::uint32_t stream,
                  RecordedBatch& batch);

  /// Records that began before `at` are left out; TraceTime::max(): all are.
  void start_at(TraceTime at) { start_ = at; }
  /// Leaves records before the start out of a batch that was decoded before start_at().
  void leave_out_early(RecordedBatch& batch) const;
  /// From here on calls that begin after `at` are left out, with the work that they launched. An
  /// operation begun later may be of an earlier call: it is kept back until finish().
  void stop_at(TraceTime at) { stop_ = at; }
  /// After the last decode(): appends kept-back records that were launched before the stop.
  void finish(RecordedBatch& batch);

  /// The description of the device with most kernels so far.
  [[nodiscard]] const traces::DeviceInfo& device() const { return devices_.busiest(); }
  [[nodiscard]] const CounterSet& counters() const { return counters_; }

 private:
  struct Span {
    TraceTime start{};
    Duration duration{};
    bool known = false;
  };
  [[nodiscard]] Span span_of(std::uint64_t start, std::uint64_t end);
  [[nodiscard]] StreamId stream_of(std::uint32_t context, std::uint32_t stream);
  /// The number of an event for SyncRecord; 0: none.
  [[nodiscard]] std::uint64_t event_of(const std::uint64_t* event_sync, std::uint32_t event) const;

  void leave_out_late(RecordedBatch& batch);
  void take(const cupti::Record* record, RecordedBatch& batch);
  /// Adds an operation with the fields that all kinds have; nullptr: the record has no time.
  template <class Record>
  traces::DeviceOp* add_op(const Record& record, traces::DeviceOpKind kind, RecordedBatch& batch);
  void take_kernel(const cupti::KernelRecord& record, RecordedBatch& batch);
  /// Takes a copy on one device or between two.
  template <class Record>
  void take_copy(const Record& record, RecordedBatch& batch);
  void take_memset(const cupti::MemsetRecord& record, RecordedBatch& batch);
  void take_graph(const cupti::GraphRecord& record, RecordedBatch& batch);
  void take_call(const cupti::ApiRecord& record, CallNames& names, RecordedBatch& batch);
  void take_synchronization(const cupti::SynchronizationRecord& record, RecordedBatch& batch);
  void take_event(const cupti::CudaEventRecord& record);
  void take_overhead(const cupti::OverheadRecord& record, RecordedBatch& batch);
  void take_memory(const cupti::MemoryRecord& record, RecordedBatch& batch);
  void take_stream(const cupti::StreamRecord& record);

  const CuptiApi& api_;
  RecordTables& tables_;
  CallNames runtime_calls_;
  CallNames driver_calls_;
  CopyNames copies_;
  KnownDevices devices_;
  LiveMemory memory_;
  std::vector<traces::SyncRecord> events_;  ///< of this buffer: most have no time, so they go last
  bool has_event_sync_;
  TraceTime start_ = TraceTime::min();
  TraceTime stop_ = TraceTime::max();
  std::unordered_set<std::uint32_t> late_;  ///< correlations of calls after the stop
  std::vector<traces::DeviceOp> late_ops_;
  std::vector<traces::SyncRecord> late_syncs_;
  CounterSet counters_;
};

}  // namespace bubblesim::capture
