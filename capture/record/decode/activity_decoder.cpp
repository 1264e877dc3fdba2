#include "capture/record/decode/activity_decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "capture/record/cupti/abi.hpp"
#include "traces/launch_shapes.hpp"

// Everything that decoding drops, guesses or does not know, by counter.
namespace bubblesim::capture::decode {

constexpr CounterSpec kNoTime{"cupti_records_without_time_dropped", Severity::kLoss,
    "operations and calls whose start or end is 0: CUPTI has no time for them, mostly because "
    "they were under way when the recording stopped"};
constexpr CounterSpec kNegative{"cupti_negative_durations_clamped", Severity::kNotice,
    "records that end before they start, by CUPTI's error in turning the device's clock into "
    "the host's; their duration was set to 0"};
constexpr CounterSpec kUnknownKind{"cupti_unknown_records_skipped", Severity::kNotice,
    "records of a kind that the recorder does not know"};
constexpr CounterSpec kDamaged{"cupti_buffers_damaged", Severity::kLoss,
    "buffers that CUPTI could not read to the end; what follows in them is lost"};
constexpr CounterSpec kUnnamed{"cupti_kernels_unnamed", Severity::kNotice,
    "kernels without a name"};
constexpr CounterSpec kDirection{"cupti_copies_of_unknown_direction", Severity::kNotice,
    "copies that say neither from where nor to where"};
constexpr CounterSpec kUnlisted{"cupti_unlisted_calls", Severity::kInfo,
    "calls that need not be recorded, but are where CUPTI cannot leave single calls out, and "
    "until it has done so at the start; they are named by number"};
constexpr CounterSpec kFailedCall{"cupti_failed_calls", Severity::kInfo,
    "calls that returned an error to the job"};
constexpr CounterSpec kSyncType{"cupti_synchronisations_of_unknown_type",
    Severity::kNotice, "synchronisations of a type that the recorder does not know; dropped"};
constexpr CounterSpec kNoContext{"cupti_streams_of_unknown_device", Severity::kNotice,
    "streams whose context no record had described; they are said to be of device 0"};
constexpr CounterSpec kLatePriority{"cupti_stream_priorities_late", Severity::kInfo,
    "streams whose priority became known after their first use; it is not in the trace"};
constexpr CounterSpec kNoThread{"cupti_stalls_without_thread", Severity::kInfo,
    "spans of the profiler's own work that belong to no thread; not in the trace"};
constexpr CounterSpec kNoThreadTime{"cupti_stalls_without_thread_ns", Severity::kInfo,
    "nanoseconds of those spans"};
constexpr CounterSpec kAfterStop{"capture_records_after_stop", Severity::kInfo,
    "calls of after the stop and what they launched, left out: CUPTI records on until the GPU has "
    "ended what was launched before"};
constexpr CounterSpec kReplaced{"cupti_allocations_replaced", Severity::kInfo,
    "allocations at an address that was in use: its release was not recorded"};
constexpr CounterSpec kUnknownRelease{"cupti_releases_of_earlier_memory", Severity::kInfo,
    "releases of memory that was allocated before the recording; the samples do not hold it"};
constexpr CounterSpec kMemoryFull{"cupti_allocations_not_followed", Severity::kLoss,
    "allocations beyond a million live ones; the samples do not hold them"};

}  // namespace bubblesim::capture::decode

namespace bubblesim::capture {

using traces::HostCallKind;

namespace {

/// The last instant that a recorded time can be; anything later is not a time.
constexpr std::uint64_t kLastTime = std::uint64_t{1} << 62U;

template <class Wanted>
const Wanted& record_as(const cupti::Record* record) {
  return *reinterpret_cast<const Wanted*>(record);
}

TraceTime time_of(std::uint64_t ns) { return TraceTime{Duration{static_cast<std::int64_t>(ns)}}; }

traces::LaunchShape shape_of(const cupti::KernelRecord& record) {
  return {{record.grid[0], record.grid[1], record.grid[2]},
          {record.block[0], record.block[1], record.block[2]},
          record.registers_per_thread,
          record.static_shared_memory + record.dynamic_shared_memory};
}

HostCallKind sync_kind(std::uint32_t type) {
  switch (type) {
    case cupti::kSyncEvent:
      return HostCallKind::kEventSync;
    case cupti::kSyncStreamWaitEvent:
      return HostCallKind::kStreamWaitEvent;
    case cupti::kSyncStream:
      return HostCallKind::kStreamSync;
    case cupti::kSyncContext:
      return HostCallKind::kDeviceSync;
    default:
      return HostCallKind::kOther;
  }
}

traces::StallKind stall_kind(std::uint32_t overhead) {
  switch (overhead) {
    case cupti::kOverheadCommandBufferFull:
      return traces::StallKind::kQueueFull;
    case cupti::kOverheadDriverCompiler:
    case cupti::kOverheadModuleLoading:
    case cupti::kOverheadFunctionLoading:
      return traces::StallKind::kModuleLoad;
    case cupti::kOverheadUnknown:
      return traces::StallKind::kOther;
    default:
      return traces::StallKind::kProfiler;
  }
}

bool on_device(std::uint32_t memory_kind) {
  return memory_kind >= cupti::kMemoryDevice && memory_kind <= cupti::kMemoryManagedStatic;
}

}  // namespace

ActivityDecoder::ActivityDecoder(const CuptiApi& api, RecordTables& tables)
    : api_(api),
      tables_(tables),
      runtime_calls_(traced_runtime_calls(), "runtime"),
      driver_calls_(traced_driver_calls(), "driver"),
      has_event_sync_(api.version >= cupti::kFirstWithEventSync) {}

void ActivityDecoder::decode(std::uint8_t* buffer, std::size_t valid, RecordedBatch& batch) {
  if (buffer == nullptr || valid == 0) return;
  void* next = nullptr;
  const void* before = nullptr;
  cupti::Result result = api_.get_next_record(buffer, valid, &next);
  while (result == cupti::Result::kSuccess && next > before) {
    take(static_cast<const cupti::Record*>(next), batch);
    before = next;
    result = api_.get_next_record(buffer, valid, &next);
  }
  if (result != cupti::Result::kMaxLimitReached) counters_.add(decode::kDamaged);
  batch.syncs.insert(batch.syncs.end(), events_.begin(), events_.end());
  events_.clear();
  if (start_ != TraceTime::min()) leave_out_early(batch);
  if (stop_ != TraceTime::max()) leave_out_late(batch);
}

void ActivityDecoder::leave_out_early(RecordedBatch& batch) const {
  const auto is_early = [this](const auto& record) { return record.start < start_; };
  std::erase_if(batch.calls, is_early);
  std::erase_if(batch.ops, is_early);
  std::erase_if(batch.stalls, is_early);
  std::erase_if(batch.notes, is_early);
  std::erase_if(batch.markers, is_early);
  std::erase_if(batch.memory, [this](const auto& sample) { return sample.at < start_; });
  // Recordings of events have no time of the host.
  std::erase_if(batch.syncs, [this](const traces::SyncRecord& sync) {
    return sync.kind != HostCallKind::kEventRecord && sync.at < start_;
  });
  if (start_ == TraceTime::max()) batch.syncs.clear();
}

void ActivityDecoder::leave_out_late(RecordedBatch& batch) {
  const std::size_t before = batch.calls.size();
  std::erase_if(batch.calls, [this](const traces::HostCall& call) {
    if (call.start > stop_) late_.insert(static_cast<std::uint32_t>(call.correlation));
    return call.start > stop_;
  });
  counters_.add(decode::kAfterStop, before - batch.calls.size());
  std::erase_if(batch.memory, [this](const auto& sample) { return sample.at > stop_; });
  std::erase_if(batch.stalls, [this](const auto& stall) { return stall.start > stop_; });
  std::erase_if(batch.ops, [this](const traces::DeviceOp& op) {
    if (op.start <= stop_) return false;
    late_ops_.push_back(op);
    late_ops_.back().collective = traces::kNone;  // an index into this batch
    return true;
  });
  // Recordings of events have no time of the host.
  std::erase_if(batch.syncs, [this](const traces::SyncRecord& sync) {
    const bool may_be_late = sync.kind == HostCallKind::kEventRecord || sync.at > stop_;
    if (may_be_late) late_syncs_.push_back(sync);
    return may_be_late;
  });
}

void ActivityDecoder::finish(RecordedBatch& batch) {
  const auto is_early = [this](const auto& record) {
    return !late_.contains(static_cast<std::uint32_t>(record.correlation));
  };
  std::ranges::copy_if(late_ops_, std::back_inserter(batch.ops), is_early);
  std::ranges::copy_if(late_syncs_, std::back_inserter(batch.syncs), is_early);
  late_ops_.clear(), late_syncs_.clear();
}

void ActivityDecoder::take(const cupti::Record* record, RecordedBatch& batch) {
  switch (record->kind) {
    case cupti::kKindConcurrentKernel:
    case cupti::kKindKernel:
      return take_kernel(record_as<cupti::KernelRecord>(record), batch);
    case cupti::kKindRuntime:
      return take_call(record_as<cupti::ApiRecord>(record), runtime_calls_, batch);
    case cupti::kKindDriver:
      return take_call(record_as<cupti::ApiRecord>(record), driver_calls_, batch);
    case cupti::kKindMemcpy:
      return take_copy(record_as<cupti::CopyRecord>(record), batch);
    case cupti::kKindMemset:
      return take_memset(record_as<cupti::MemsetRecord>(record), batch);
    case cupti::kKindSynchronization:
      return take_synchronization(record_as<cupti::SynchronizationRecord>(record), batch);
    case cupti::kKindCudaEvent:
      return take_event(record_as<cupti::CudaEventRecord>(record));
    case cupti::kKindMemcpyPeer:
      return take_copy(record_as<cupti::PeerCopyRecord>(record), batch);
    case cupti::kKindGraphTrace:
      return take_graph(record_as<cupti::GraphRecord>(record), batch);
    case cupti::kKindOverhead:
      return take_overhead(record_as<cupti::OverheadRecord>(record), batch);
    case cupti::kKindMemory2:
      return take_memory(record_as<cupti::MemoryRecord>(record), batch);
    case cupti::kKindDevice:
      return devices_.describe(record_as<cupti::DeviceRecord>(record));
    case cupti::kKindContext:
      return devices_.note_context(record_as<cupti::ContextRecord>(record).context,
                                   record_as<cupti::ContextRecord>(record).device);
    case cupti::kKindStream:
      return take_stream(record_as<cupti::StreamRecord>(record));
    default:
      return counters_.add(decode::kUnknownKind);
  }
}

ActivityDecoder::Span ActivityDecoder::span_of(std::uint64_t start, std::uint64_t end) {
  if (start == 0 || end == 0 || start > kLastTime || end > kLastTime) {
    counters_.add(decode::kNoTime);
    return {};
  }
  if (end < start) {
    counters_.add(decode::kNegative);
    end = start;
  }
  return {time_of(start), Duration{static_cast<std::int64_t>(end - start)}, true};
}

StreamId ActivityDecoder::stream_of(std::uint32_t context, std::uint32_t stream) {
  const auto device = devices_.device_of(context);
  if (!device) counters_.add(decode::kNoContext);
  return tables_.stream(device.value_or(0), context, stream);
}

template <class Record>
traces::DeviceOp* ActivityDecoder::add_op(const Record& record, traces::DeviceOpKind kind,
                                          RecordedBatch& batch) {
  const Span span = span_of(record.start, record.end);
  if (!span.known) return nullptr;
  devices_.note_context(record.context, record.device);
  return &batch.ops.emplace_back(traces::DeviceOp{
      .start = span.start,
      .duration = span.duration,
      .correlation = record.correlation,
      .stream = tables_.stream(record.device, record.context, record.stream),
      .kind = kind});
}

void ActivityDecoder::take_kernel(const cupti::KernelRecord& record, RecordedBatch& batch) {
  traces::DeviceOp* const op = add_op(record, traces::DeviceOpKind::kKernel, batch);
  if (op == nullptr) return;
  devices_.count_kernel(record.device);
  if (record.name == nullptr) counters_.add(decode::kUnnamed);
  op->name = tables_.name_at(record.name);
  op->shape = tables_.shape(shape_of(record));
  const auto* const announced = tables_.announced(record.graph_node);
  if (record.graph_node == 0 || announced == nullptr) return;
  op->collective = static_cast<std::uint32_t>(batch.collectives.size());
  batch.collectives.push_back(*announced);
}

template <class Record>
void ActivityDecoder::take_copy(const Record& record, RecordedBatch& batch) {
  traces::DeviceOp* const op = add_op(record, traces::DeviceOpKind::kCopy, batch);
  if (op == nullptr) return;
  const bool peer = record.kind == cupti::kKindMemcpyPeer;
  const auto kind = peer ? std::uint8_t{cupti::kCopyPeerToPeer} : record.copy_kind;
  op->direction = direction_of(kind);
  if (op->direction == traces::CopyDirection::kNone) counters_.add(decode::kDirection);
  op->name = copies_.copy(kind, record.source_kind, record.target_kind, tables_);
  op->bytes = record.bytes;
}

void ActivityDecoder::take_memset(const cupti::MemsetRecord& record, RecordedBatch& batch) {
  traces::DeviceOp* const op = add_op(record, traces::DeviceOpKind::kMemset, batch);
  if (op == nullptr) return;
  op->name = copies_.memset(record.memory_kind, tables_);
  op->bytes = record.bytes;
}

void ActivityDecoder::take_graph(const cupti::GraphRecord& record, RecordedBatch& batch) {
  traces::DeviceOp* const op = add_op(record, traces::DeviceOpKind::kKernel, batch);
  if (op == nullptr) return;
  devices_.count_kernel(record.device);
  op->name = tables_.name(fmt::format("(graph {})", record.graph));
  op->shape = tables_.shape(traces::kUnknownShape);
}

void ActivityDecoder::take_call(const cupti::ApiRecord& record, CallNames& names,
                                RecordedBatch& batch) {
  const Span span = span_of(record.start, record.end);
  if (!span.known) return;
  const CallNames::Call& call = names.call(record.id, tables_);
  if (!call.listed) counters_.add(decode::kUnlisted);
  // A query that finds nothing done returns cudaErrorNotReady.
  const bool failed = record.return_value != 0 && call.kind != HostCallKind::kEventQuery;
  if (failed) counters_.add(decode::kFailedCall);
  batch.calls.push_back({.start = span.start,
                         .duration = span.duration,
                         .correlation = record.correlation,
                         .name = call.name,
                         .thread = tables_.thread(record.thread),
                         .kind = call.kind});
}

/// `event_sync` is read only where it is part of the record.
std::uint64_t ActivityDecoder::event_of(const std::uint64_t* event_sync,
                                        std::uint32_t event) const {
  if (has_event_sync_) {
    const std::uint64_t recording = *event_sync;
    const bool none = recording == 0 || recording == cupti::kNotApplicable ||
                      recording >= kEventOnly;
    if (!none) return recording;
  }
  return event == cupti::kNotApplicable ? 0 : kEventOnly | event;
}

void ActivityDecoder::take_synchronization(const cupti::SynchronizationRecord& record,
                                           RecordedBatch& batch) {
  const HostCallKind kind = sync_kind(record.type);
  if (kind == HostCallKind::kOther) return counters_.add(decode::kSyncType);
  traces::SyncRecord sync{.at = time_of(record.start > kLastTime ? 0 : record.start),
                          .correlation = record.correlation,
                          .kind = kind};
  // The context is of one device, which is the only one that a synchronisation waits for.
  if (const auto device = devices_.device_of(record.context)) sync.device = *device + 1;
  if (record.stream != cupti::kNotApplicable && kind != HostCallKind::kDeviceSync &&
      kind != HostCallKind::kEventSync) {
    sync.stream = stream_of(record.context, record.stream).value;
  }
  if (kind == HostCallKind::kEventSync || kind == HostCallKind::kStreamWaitEvent)
    sync.event = event_of(&record.event_sync, record.event);
  batch.syncs.push_back(sync);
}

void ActivityDecoder::take_value(traces::SyncRecord sync, std::uint32_t context,
                                 std::uint32_t stream, RecordedBatch& batch) {
  if (const auto device = devices_.device_of(context)) sync.device = *device + 1;
  sync.stream = stream_of(context, stream).value;
  batch.syncs.push_back(sync);
}

void ActivityDecoder::take_event(const cupti::CudaEventRecord& record) {
  const std::uint64_t at = has_event_sync_ ? record.device_timestamp : 0;
  if (has_event_sync_) devices_.note_context(record.context, record.device);
  events_.push_back({.at = time_of(at > kLastTime ? 0 : at),
                     .correlation = record.correlation,
                     .kind = HostCallKind::kEventRecord,
                     .stream = stream_of(record.context, record.stream).value,
                     .event = event_of(&record.event_sync, record.event)});
}

void ActivityDecoder::take_overhead(const cupti::OverheadRecord& record, RecordedBatch& batch) {
  const Span span = span_of(record.start, record.end);
  if (!span.known) return;
  if (record.object_kind != cupti::kObjectThread) {
    counters_.add(decode::kNoThread);
    counters_.add(decode::kNoThreadTime, static_cast<std::uint64_t>(to_ns(span.duration)));
    return;
  }
  batch.stalls.push_back({.start = span.start,
                          .duration = span.duration,
                          .thread = tables_.thread(record.thread),
                          .kind = stall_kind(record.overhead_kind)});
}

void ActivityDecoder::take_memory(const cupti::MemoryRecord& record, RecordedBatch& batch) {
  if (!on_device(record.memory_kind)) return;
  if (record.timestamp == 0 || record.timestamp > kLastTime)
    return counters_.add(decode::kNoTime);
  const LiveMemory::Outcome outcome = record.operation == cupti::kMemoryRelease
                                          ? memory_.release(record.address)
                                          : memory_.allocate(record.address, record.bytes);
  if (outcome == LiveMemory::Outcome::kUnknown) return counters_.add(decode::kUnknownRelease);
  if (outcome == LiveMemory::Outcome::kFull) return counters_.add(decode::kMemoryFull);
  if (outcome == LiveMemory::Outcome::kReplaced) counters_.add(decode::kReplaced);
  batch.memory.push_back({.at = time_of(record.timestamp),
                          .allocated_bytes = memory_.bytes(),
                          .reserved_bytes = memory_.bytes()});
}

void ActivityDecoder::take_stream(const cupti::StreamRecord& record) {
  const StreamId stream = stream_of(record.context, record.stream);
  if (!tables_.describe_stream(stream, static_cast<std::int32_t>(record.priority),
                               traces::stream_kind(record.flag)))
    counters_.add(decode::kLatePriority);
}

}  // namespace bubblesim::capture
