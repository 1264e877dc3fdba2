#include "traces/export/job_to_chrome.hpp"

#include <algorithm>

#include "traces/record_names.hpp"

namespace bubblesim::traces {
namespace {

std::string_view name_of(StallKind kind) {
  switch (kind) {
    case StallKind::kQueueFull: return "launch queue full";
    case StallKind::kProfiler: return "profiler overhead";
    case StallKind::kModuleLoad: return "module load";
    case StallKind::kOther: return "stall";
  }
  return "stall";
}

/// The earliest start of any record of the job; zero if it has none.
TraceTime origin_of(const JobTrace& job) {
  TraceTime first = TraceTime::max();
  const auto look = [&first](const auto& records) {
    for (const auto& record : records) first = std::min(first, record.start);
  };
  for (const RankTrace& rank : job.ranks) {
    look(rank.host_calls);
    look(rank.device_ops);
    look(rank.markers);
    look(rank.stalls);
    for (const MemorySample& sample : rank.memory) first = std::min(first, sample.at);
  }
  return first == TraceTime::max() ? TraceTime{} : first;
}

/// Adds one rank's records to the trace.
class RankWriter {
 public:
  RankWriter(const RankTrace& rank, TraceTime origin, std::uint64_t first_flow, ChromeTrace& out)
      : rank_(rank), origin_(origin), first_flow_(first_flow), out_(out),
        process_(static_cast<std::uint32_t>(out.processes.size())),
        first_track_(static_cast<std::uint32_t>(out.tracks.size())) {}

  void write() {
    const std::string& device = rank_.device.name;
    out_.processes.push_back("rank " + std::to_string(rank_.rank) +
                             (device.empty() ? "" : ", " + device));
    add_tracks();
    add_host();
    add_device();
    add_memory();
  }

 private:
  void add_tracks() {
    for (std::size_t i = 0; i < rank_.threads.size(); ++i) {
      const HostThread& thread = rank_.threads[i];
      const std::string id = "thread " + std::to_string(thread.system_id);
      out_.tracks.push_back(
          {process_, thread.name.empty() ? id : thread.name + ", " + id, LaneShape::kNested});
    }
    for (const Stream& stream : rank_.streams) {
      out_.tracks.push_back(
          {process_, "stream " + std::to_string(stream.system_id), LaneShape::kFlat});
    }
  }
  void add(std::uint32_t track, NameId name, std::string_view category, TraceTime start,
           Duration duration, std::uint64_t flow) {
    out_.slices.push_back({first_track_ + track, rank_.names[name], category,
                           to_ns(start - origin_), to_ns(duration), flow});
  }
  void add_host() {
    launches_.assign(rank_.host_calls.size(), kNoFlow);
    for (const DeviceOp& op : rank_.device_ops) {
      if (op.launch != kNone) launches_[op.launch] = first_flow_ + op.launch;
    }
    for (std::size_t i = 0; i < rank_.host_calls.size(); ++i) {
      const HostCall& call = rank_.host_calls[i];
      add(call.thread.value, call.name, "host", call.start, call.duration, launches_[i]);
    }
    for (const HostStall& stall : rank_.stalls) {
      out_.slices.push_back({first_track_ + stall.thread.value, name_of(stall.kind), "stall",
                             to_ns(stall.start - origin_), to_ns(stall.duration), kNoFlow});
    }
    for (const Marker& marker : rank_.markers) {
      add(marker.thread.value, marker.name, "marker", marker.start, marker.duration, kNoFlow);
    }
  }
  void add_device() {
    const auto streams = static_cast<std::uint32_t>(rank_.threads.size());
    for (const DeviceOp& op : rank_.device_ops) {
      const std::uint64_t flow = op.launch == kNone ? kNoFlow : launches_[op.launch];
      add(streams + op.stream.value, op.name, name_of(op.kind), op.start, op.duration, flow);
    }
  }
  void add_memory() {
    if (rank_.memory.empty()) return;
    ChromeCounter allocated{process_, "allocated_bytes", {}};
    ChromeCounter reserved{process_, "reserved_bytes", {}};
    for (const MemorySample& sample : rank_.memory) {
      const std::int64_t at = to_ns(sample.at - origin_);
      allocated.samples.push_back({at, static_cast<double>(sample.allocated_bytes)});
      reserved.samples.push_back({at, static_cast<double>(sample.reserved_bytes)});
    }
    out_.counters.push_back(std::move(allocated));
    out_.counters.push_back(std::move(reserved));
  }

  const RankTrace& rank_;
  TraceTime origin_;
  std::uint64_t first_flow_;
  ChromeTrace& out_;
  std::uint32_t process_;
  std::uint32_t first_track_;
  std::vector<std::uint64_t> launches_;  ///< by host call: its flow
};

}  // namespace

ChromeTrace job_to_chrome(const JobTrace& job) {
  ChromeTrace out;
  out.flow_name = "launch";
  const TraceTime origin = origin_of(job);
  out.notes.emplace_back("origin_ns", std::to_string(to_ns(origin)));
  std::uint64_t flows = 0;
  for (const RankTrace& rank : job.ranks) {
    RankWriter(rank, origin, flows, out).write();
    flows += rank.host_calls.size();
  }
  return out;
}

}  // namespace bubblesim::traces
