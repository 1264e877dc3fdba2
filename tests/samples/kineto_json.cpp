// Writes a rank's trace as PyTorch's profiler (Kineto) writes one, for samples and round trips.
#include "tests/samples/samples.hpp"

#include <fmt/format.h>
#include <map>

#include "traces/launch_shapes.hpp"

namespace bubblesim::traces {
namespace {

/// Nanoseconds as microseconds with three decimals, exactly.
std::string microseconds(std::int64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

/// No name in a sample needs an escape.
std::string quoted(const std::string& text) { return '"' + text + '"'; }

const char* collective_name(CollectiveKind kind) {
  if (kind == CollectiveKind::kAllReduce) return "allreduce";
  return kind == CollectiveKind::kSend ? "send" : "recv";
}

/// CUPTI's number of a runtime call, as Kineto copies it; 0 for a call that samples do not make.
int callback_id(HostCallKind kind) {
  switch (kind) {
    case HostCallKind::kLaunchKernel: return 211;
    case HostCallKind::kCopy: return 41;
    case HostCallKind::kStreamSync: return 131;
    case HostCallKind::kEventRecord: return 135;
    case HostCallKind::kStreamWaitEvent: return 147;
    default: return 0;
  }
}

/// Writes the pieces of one file in order.
class KinetoWriter {
 public:
  explicit KinetoWriter(const RankTrace& trace) : trace_(trace) {}
  std::string take() {
    header();
    for (std::size_t i = 0; i < trace_.threads.size(); ++i)
      metadata("thread_name", on_thread(ThreadId{static_cast<std::uint32_t>(i)}),
               trace_.threads[i].name);
    for (const Marker& row : trace_.markers) marker(row);
    for (const HostCall& row : trace_.host_calls) host_call(row);
    for (const DeviceOp& row : trace_.device_ops) device_op(row);
    for (const MemorySample& row : trace_.memory) memory(row);
    out_ += "\n  ],\n  \"traceName\": " + quoted(trace_.provenance.source) + "\n}\n";
    return std::move(out_);
  }

 private:
  void header() {
    const DeviceInfo& device = trace_.device;
    out_ += fmt::format(
        "{{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{{\"id\": 0, \"name\": {}, "
        "\"totalGlobalMem\": {}, \"computeMajor\": {}, \"computeMinor\": {}, \"warpSize\": 32, "
        "\"numSms\": {}}}],\n",
        quoted(device.name), device.memory_bytes, device.compute_major, device.compute_minor,
        device.sm_count);
    if (trace_.world_size > 1)
      out_ += fmt::format(
          "  \"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}}},\n",
          trace_.rank, trace_.world_size);
    out_ += "  \"displayTimeUnit\": \"ms\",\n  \"traceEvents\": [";
  }
  void event(const std::string& body) {
    out_ += first_ ? "\n  {" : ",\n  {";
    out_ += body;
    out_ += '}';
    first_ = false;
  }
  void span(const char* category, const std::string& name, const std::string& where,
            TraceTime start, Duration duration, const std::string& args) {
    event(fmt::format(
        R"("ph": "X", "cat": "{}", "name": {}, {}, "ts": {}, "dur": {}, "args": {{{}}})",
        category, quoted(name), where, microseconds(to_ns(start)),
        microseconds(to_ns(duration)), args));
  }
  void metadata(const char* what, const std::string& where, const std::string& name) {
    event(fmt::format(R"("ph": "M", "name": "{}", {}, "ts": 0, "args": {{"name": {}}})", what,
                      where, quoted(name)));
  }
  void marker(const Marker& row) {
    span("user_annotation", trace_.names[row.name], on_thread(row.thread), row.start, row.duration,
         "");
  }
  void device_op(const DeviceOp& row) {
    const std::uint64_t stream = stream_id(row.stream.value);
    std::string args = fmt::format(R"("device": 0, "context": 1, "stream": {}, "correlation": {})",
                                   stream, row.correlation);
    const char* category = "kernel";
    if (row.kind == DeviceOpKind::kCopy || row.kind == DeviceOpKind::kMemset) {
      category = row.kind == DeviceOpKind::kCopy ? "gpu_memcpy" : "gpu_memset";
      args += fmt::format(R"(, "bytes": {})", row.bytes);
    } else {
      if (has_known_shape(trace_, row)) args += shape_args(trace_.shapes[row.shape]);
      if (row.collective != kNone) args += collective_args(trace_.collectives[row.collective]);
    }
    span(category, trace_.names[row.name], fmt::format(R"("pid": 0, "tid": {})", stream), row.start,
         row.duration, args);
  }
  void host_call(const HostCall& row) {
    const std::string& name = trace_.names[row.name];
    const char* category = name.starts_with("cuda") ? "cuda_runtime" : "cuda_driver";
    span(category, name, on_thread(row.thread), row.start, row.duration,
         fmt::format(R"("cbid": {}, "correlation": {})", callback_id(row.kind), row.correlation));
    if (row.kind == HostCallKind::kEventRecord) records_[row.event] = &row;
    if (row.kind == HostCallKind::kStreamWaitEvent) stream_wait(row);
    if (row.kind == HostCallKind::kStreamSync && row.stream != kNone)
      span("cuda_sync", "Stream Sync", fmt::format(R"("pid": 0, "tid": {})", stream_id(row.stream)),
           row.start, row.duration,
           fmt::format(R"("cuda_sync_kind": "Stream Sync", "stream": {}, "correlation": {}, )"
                       R"("device": 0, "context": 1)",
                       stream_id(row.stream), row.correlation));
  }
  void stream_wait(const HostCall& row) {
    const auto found = records_.find(row.event);
    if (found == records_.end() || row.stream == kNone || found->second->stream == kNone) return;
    span("cuda_sync", "Stream Wait Event",
         fmt::format(R"("pid": 0, "tid": {})", stream_id(row.stream)), row.start, row.duration,
         fmt::format(R"("cuda_sync_kind": "Stream Wait Event", "wait_on_stream": {}, )"
                     R"("wait_on_cuda_event_record_corr_id": {}, "wait_on_cuda_event_id": {}, )"
                     R"("stream": {}, "correlation": {}, "device": 0, "context": 1)",
                     stream_id(found->second->stream), found->second->correlation, row.event,
                     stream_id(row.stream), row.correlation));
  }
  void memory(const MemorySample& row) {
    event(fmt::format(
        R"("ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", )"
        R"("pid": {}, "tid": {}, "ts": {}, "args": {{"Device Type": 1, "Device Id": 0, )"
        R"("Total Allocated": {}, "Total Reserved": {}}})",
        process(), process(), microseconds(to_ns(row.at)), row.allocated_bytes,
        row.reserved_bytes));
  }
  [[nodiscard]] std::string collective_args(const Collective& what) const {
    std::string ranks;
    for (const std::uint32_t peer : what.peers)
      ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", peer);
    // Kineto counts elements; halves here, so that bytes survive.
    std::string args = fmt::format(
        R"(, "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "dtype": "Half", )"
        R"("Group size": {}, "Process Group Name": {}, "Process Group Ranks": "[{}]", "Rank": {})",
        collective_name(what.kind), what.bytes / 2, what.bytes / 2, what.group_size,
        quoted(trace_.names[what.group]), ranks, trace_.rank);
    const bool sends = what.kind == CollectiveKind::kSend;
    if ((sends || what.kind == CollectiveKind::kRecv) && what.peers.size() == 2) {
      const std::uint32_t other = what.peers[what.peers[0] == trace_.rank ? 1 : 0];
      args += fmt::format(R"(, "Src Rank": {}, "Dst Rank": {})", sends ? trace_.rank : other,
                          sends ? other : trace_.rank);
    }
    if (what.sequence_recorded) args += fmt::format(R"(, "Seq": {})", what.sequence);
    return args;
  }
  [[nodiscard]] std::string shape_args(const LaunchShape& shape) const {
    const auto& g = shape.grid;
    const auto& b = shape.block;
    return fmt::format(
        R"(, "registers per thread": {}, "shared memory": {}, "grid": [{}, {}, {}], )"
        R"("block": [{}, {}, {}])",
        shape.registers_per_thread, shape.shared_memory_bytes, g[0], g[1], g[2], b[0], b[1], b[2]);
  }
  [[nodiscard]] std::string on_thread(ThreadId thread) const {
    return fmt::format(R"("pid": {}, "tid": {})", process(),
                       trace_.threads[thread.index()].system_id);
  }
  [[nodiscard]] std::uint64_t process() const {
    return trace_.threads.empty() ? 1 : trace_.threads.front().system_id;
  }
  [[nodiscard]] std::uint64_t stream_id(std::uint32_t index) const {
    return trace_.streams[index].system_id;
  }

  const RankTrace& trace_;
  std::string out_;
  bool first_ = true;
  std::map<std::uint64_t, const HostCall*> records_;  ///< the last record of each event
};

}  // namespace

std::string write_kineto_json(const RankTrace& trace) { return KinetoWriter(trace).take(); }

}  // namespace bubblesim::traces
