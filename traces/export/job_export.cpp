#include "traces/export/job_export.hpp"

#include <algorithm>
#include <ostream>
#include <string_view>

#include "sim/base/output_file.hpp"
#include "sim/text/escaped_text.hpp"
#include "traces/launch_shapes.hpp"
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

namespace {

constexpr std::string_view kHeader =
    "rank,record,index,kind,name,start_ns,duration_ns,thread,stream,device,correlation,launch,"
    "grid_x,grid_y,grid_z,block_x,block_y,block_z,registers_per_thread,shared_memory_bytes,bytes,"
    "direction,collective,group,group_size,sequence,event\n";

/// One row, cell by cell.
class Row {
 public:
  explicit Row(std::string& text) : text_(text) { text_.clear(); }

  Row& text(std::string_view cell) {
    separate();
    append_csv_cell(text_, cell);
    return *this;
  }
  template <class Integer>
  Row& number(Integer value) {
    separate();
    text_ += std::to_string(value);
    return *this;
  }
  template <class Integer>
  Row& unless_zero(Integer value) {
    return value == 0 ? empty() : number(value);
  }
  Row& empty(int cells = 1) {
    for (int i = 0; i < cells; ++i) separate();
    return *this;
  }
  void end() { text_ += '\n'; }

 private:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  std::string& text_;
  bool first_ = true;
};

void put_stream(Row& row, const RankTrace& rank, std::uint32_t stream) {
  if (stream >= rank.streams.size()) {
    row.empty(2);
    return;
  }
  row.number(rank.streams[stream].system_id).number(rank.streams[stream].device);
}

void format_call(const RankTrace& rank, std::size_t index, std::string& line) {
  const HostCall& call = rank.host_calls[index];
  Row row(line);
  row.number(rank.rank).text("host_call").number(index).text(name_of(call.kind));
  row.text(rank.names[call.name]).number(to_ns(call.start)).number(to_ns(call.duration));
  row.number(rank.threads[call.thread.index()].system_id);
  put_stream(row, rank, call.stream);
  row.unless_zero(call.correlation).empty(15).unless_zero(call.event).end();
}

void put_collective(Row& row, const RankTrace& rank, std::uint32_t index) {
  if (index == kNone) {
    row.empty(4);
    return;
  }
  const Collective& collective = rank.collectives[index];
  row.text(name_of(collective.kind)).text(rank.names[collective.group]);
  row.unless_zero(collective.group_size).number(collective.sequence);
}

void format_op(const RankTrace& rank, std::size_t index, std::string& line) {
  const DeviceOp& op = rank.device_ops[index];
  Row row(line);
  row.number(rank.rank).text("device_op").number(index).text(name_of(op.kind));
  row.text(rank.names[op.name]).number(to_ns(op.start)).number(to_ns(op.duration)).empty();
  put_stream(row, rank, op.stream.value);
  row.unless_zero(op.correlation);
  op.launch == kNone ? row.empty() : row.number(op.launch);
  if (has_known_shape(rank, op)) {
    const LaunchShape& shape = rank.shapes[op.shape];
    for (const std::uint32_t side : shape.grid) row.number(side);
    for (const std::uint32_t side : shape.block) row.number(side);
    row.unless_zero(shape.registers_per_thread).number(shape.shared_memory_bytes);
  } else {
    row.empty(8);
  }
  const bool communicates = op.collective != kNone;
  row.unless_zero(communicates ? rank.collectives[op.collective].bytes : op.bytes);
  op.direction == CopyDirection::kNone ? row.empty() : row.text(name_of(op.direction));
  put_collective(row, rank, op.collective);
  row.empty().end();
}

}  // namespace

std::uint64_t write_job_csv(std::ostream& out, const JobTrace& job) {
  out << kHeader;
  std::uint64_t rows = 0;
  std::string line;
  for (const RankTrace& rank : job.ranks) {
    for (std::size_t i = 0; i < rank.host_calls.size(); ++i) {
      format_call(rank, i, line);
      out << line;
    }
    for (std::size_t i = 0; i < rank.device_ops.size(); ++i) {
      format_op(rank, i, line);
      out << line;
    }
    rows += rank.host_calls.size() + rank.device_ops.size();
  }
  return rows;
}

Result<std::uint64_t> write_job_csv_file(const std::string& path, const JobTrace& job) {
  BUBBLESIM_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  const std::uint64_t rows = write_job_csv(file.stream(), job);
  BUBBLESIM_RETURN_IF_ERROR(file.finish());
  return rows;
}

}  // namespace bubblesim::traces
