#include "sim/synth/record_trace.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "sim/base/time.hpp"
#include "sim/workload/launch.hpp"
#include "sim/workload/lone_job.hpp"
#include "traces/sort_records.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::synth {
namespace {

// What a trace says of each collective of a job: its process group and its number in it, and the
// ends of a transfer. Internal to record_trace.

struct CollectiveLabel {
  std::string group;
  std::uint64_t number = 0;       ///< within the group, from 0
  std::uint64_t in_group = 1;     ///< collectives of the group a pass
  std::uint32_t from = program::kNoIndex;  ///< transfers: rank numbers
  std::uint32_t to = program::kNoIndex;
};

/// Begin and end of an operation or of a call.
struct RecordedSpan {
  SimTime start{};
  SimTime end{};
};

/// A step of kind kIteration or kEnd was passed.
struct RecordedMark {
  std::uint32_t index = 0;  ///< of the iteration within its pass; Program::iterations: kEnd
  SimTime at{};
};

class RankRecording final : public workload::RunObserver {
 public:
  RankRecording(const program::Program& program, std::uint64_t passes)
      : passes_(passes), ended_(program.ops.size()), ops_(program.ops.size() * passes),
        calls_(program.threads.size()) {}

  void on_op_finished(const workload::OpRecord& record) override {
    const std::uint64_t pass = ended_[record.op]++;
    if (pass < passes_) ops_[pass * ended_.size() + record.op] = {record.start, record.end};
  }
  void on_host_call(const workload::HostCallRecord& record) override {
    calls_[record.thread].push_back({record.start, record.end});
  }
  void on_iteration(workload::ProgramRun&, std::uint32_t index, SimTime now) override {
    marks_.push_back({index, now});
  }

  [[nodiscard]] std::uint64_t passes() const { return passes_; }
  [[nodiscard]] const RecordedSpan& op(std::uint64_t pass, std::uint32_t index) const {
    return ops_[pass * ended_.size() + index];
  }
  /// Every step of the thread, pass after pass.
  [[nodiscard]] const std::vector<RecordedSpan>& calls(std::size_t thread) const {
    return calls_[thread];
  }
  [[nodiscard]] const std::vector<RecordedMark>& marks() const { return marks_; }

 private:
  std::uint64_t passes_;
  std::vector<std::uint64_t> ended_;  ///< by operation
  std::vector<RecordedSpan> ops_;
  std::vector<std::vector<RecordedSpan>> calls_;
  std::vector<RecordedMark> marks_;
};

// ---- Makes a trace of what a rank did. Internal to record_trace.

using traces::HostCallKind;
using program::kNoIndex;
using program::Op;
using program::Program;
using program::Step;
using program::StepKind;

/// No call launched the operation.
constexpr std::size_t kNoCall = std::numeric_limits<std::size_t>::max();

TraceTime recorded(SimTime at) { return TraceTime{at - kSimStart}; }

const char* call_name(HostCallKind kind) {
  switch (kind) {
    case HostCallKind::kLaunchGraph: return "cudaGraphLaunch";
    case HostCallKind::kCopy: return "cudaMemcpyAsync";
    case HostCallKind::kMemset: return "cudaMemsetAsync";
    case HostCallKind::kStreamSync: return "cudaStreamSynchronize";
    case HostCallKind::kDeviceSync: return "cudaDeviceSynchronize";
    case HostCallKind::kEventSync: return "cudaEventSynchronize";
    default: return "cudaLaunchKernel";
  }
}

// A kernel that takes what the profile takes of an SM.
traces::LaunchShape shape_like(const program::KernelProfile& profile) {
  traces::LaunchShape shape;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const std::uint32_t threads = std::clamp(profile.residency.warps, 1U, 32U) * 32;
  shape.grid[0] = static_cast<std::uint32_t>(std::min(profile.blocks, kMost));
  shape.block[0] = threads;
  shape.registers_per_thread =
      static_cast<std::uint16_t>(std::min(255U, profile.residency.registers / threads));
  shape.shared_memory_bytes =
      static_cast<std::uint32_t>(std::min(profile.residency.shared_memory_bytes, kMost));
  return shape;
}

class RankWriter {
 public:
  RankWriter(const workload::JobProgram& job, const Program& program,
             const std::vector<CollectiveLabel>& labels, const RankRecording& recording,
             std::uint64_t iterations)
      : job_(job), program_(program), labels_(labels), recording_(recording) {
    find_end(iterations);
  }

  traces::RankTrace run() {
    trace_.rank = program_.rank;
    trace_.names = program_.names;
    trace_.counters = program_.counters;
    if (trace_.names.size() == 0) trace_.names.intern("kernel");
    trace_.shapes.intern({});
    add_threads_and_streams();
    for (std::uint32_t i = 0; i < program_.threads.size(); ++i) add_calls(i);
    intern_shapes();
    for (std::uint64_t pass = 0; pass < recording_.passes(); ++pass) add_ops(pass);
    for (std::uint64_t pass = 0; pass < recording_.passes(); ++pass) add_edges(pass);
    sort();
    add_markers();
    add_memory();
    return std::move(trace_);
  }

 private:
  // Nothing is left out of the last pass if it ends with the last iteration that is asked for.
  void find_end(std::uint64_t iterations) {
    if (program_.threads.empty()) return;
    const std::vector<Step>& steps = program_.threads[program_.marked_thread].steps;
    const std::vector<RecordedSpan>& spans = recording_.calls(program_.marked_thread);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (steps[i % steps.size()].kind != StepKind::kIteration || iterations-- > 0) continue;
      end_step_ = i;
      end_ = spans[i].start;
      return;
    }
  }

  // In the instant in which the next iteration begins, the steps of its own thread tell what came
  // before; other threads have only times.
  [[nodiscard]] bool is_left_out(std::uint32_t thread, std::size_t step) const {
    return thread == program_.marked_thread ? step >= end_step_
                                            : recording_.calls(thread)[step].start >= end_;
  }

  void add_threads_and_streams() {
    for (std::size_t i = 0; i < program_.threads.size(); ++i) {
      const std::string& name = program_.threads[i].name;
      trace_.threads.push_back({i + 1, name.empty() ? "thread " + std::to_string(i) : name});
    }
    for (std::size_t i = 0; i < program_.stream_count; ++i) trace_.streams.push_back({i + 1, 0});
  }

  // The steps of a thread that are calls, pass after pass; of launches, which call it was.
  void add_calls(std::uint32_t thread) {
    const std::vector<Step>& steps = program_.threads[thread].steps;
    const std::vector<RecordedSpan>& spans = recording_.calls(thread);
    launches_.resize(program_.ops.size() * recording_.passes(), kNoCall);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (is_left_out(thread, i)) break;
      const Step& step = steps[i % steps.size()];
      switch (step.kind) {
        case StepKind::kPause:
        case StepKind::kIteration:
        case StepKind::kEnd: break;
        case StepKind::kLaunch:
        case StepKind::kLaunchAndWait: add_launch(thread, step, i / steps.size(), spans[i]); break;
        case StepKind::kWaitStream:
          add_call(thread, HostCallKind::kStreamSync, spans[i], step.target);
          break;
        case StepKind::kWaitDevice: add_call(thread, HostCallKind::kDeviceSync, spans[i]); break;
        case StepKind::kWaitOp: add_call(thread, HostCallKind::kEventSync, spans[i]); break;
      }
    }
  }

  void add_call(std::uint32_t thread, HostCallKind kind, const RecordedSpan& span,
                std::uint32_t stream = traces::kNone) {
    traces::HostCall call;
    call.start = recorded(span.start);
    call.duration = span.end - span.start;
    call.name = trace_.names.intern(call_name(kind));
    call.thread = ThreadId{thread};
    call.kind = kind;
    call.stream = stream;
    trace_.host_calls.push_back(call);
  }

  // A copy blocks inside its own call; a wait for a kernel is a synchronisation after its launch.
  void add_launch(std::uint32_t thread, const Step& step, std::uint64_t pass,
                  const RecordedSpan& span) {
    const Op& first = program_.ops[step.target];
    const HostCallKind kind = launch_kind(first, step.count);
    const bool waits = step.kind == StepKind::kLaunchAndWait && kind != HostCallKind::kCopy;
    for (std::uint32_t op = step.target; op < step.target + step.count; ++op) {
      launches_[pass * program_.ops.size() + op] = trace_.host_calls.size();
    }
    const SimTime launched = std::min(span.end, span.start + step.cost.duration());
    add_call(thread, kind, {span.start, waits ? launched : span.end}, first.stream);
    if (!waits) return;
    const Op& last = program_.ops[step.target + step.count - 1];
    add_call(thread, HostCallKind::kStreamSync, {launched, span.end}, last.stream);
  }

  static HostCallKind launch_kind(const Op& op, std::uint32_t count) {
    if (count > 1) return HostCallKind::kLaunchGraph;
    if (op.kind == program::WorkKind::kCopy) return HostCallKind::kCopy;
    if (op.kind == program::WorkKind::kMemset) return HostCallKind::kMemset;
    return HostCallKind::kLaunchKernel;
  }

  void intern_shapes() {
    const bool known = program_.shapes.size() == program_.profiles.size();
    for (std::size_t i = 0; i < program_.profiles.size(); ++i) {
      shapes_.push_back(trace_.shapes.intern(known ? program_.shapes[i]
                                                   : shape_like(program_.profiles[i])));
    }
    if (known) return;
    const auto kernels =
        std::ranges::count_if(program_.ops, [](const Op& op) { return op.profile != kNoIndex; });
    trace_.counters.add(kShapesReconstructed, static_cast<std::uint64_t>(kernels));
  }

  void add_ops(std::uint64_t pass) {
    for (std::uint32_t i = 0; i < program_.ops.size(); ++i) {
      places_.push_back(kNoIndex);
      if (!is_written(pass, i)) continue;
      places_.back() = static_cast<std::uint32_t>(trace_.device_ops.size());
      add_op(pass, i);
    }
  }

  [[nodiscard]] bool is_written(std::uint64_t pass, std::uint32_t op) const {
    return launches_[pass * program_.ops.size() + op] != kNoCall;
  }

  void add_op(std::uint64_t pass, std::uint32_t index) {
    const Op& op = program_.ops[index];
    const RecordedSpan& span = recording_.op(pass, index);
    traces::DeviceOp made{.start = recorded(span.start), .duration = span.end - span.start};
    if (op.name.index() < trace_.names.size()) made.name = op.name;
    made.stream = StreamId{op.stream};
    made.kind = device_kind(op.kind);
    if (op.profile != kNoIndex) made.shape = shapes_[op.profile];
    if (op.kind == program::WorkKind::kCollective) made.collective = add_collective(op, pass);
    if (op.kind == program::WorkKind::kCopy || op.kind == program::WorkKind::kMemset) {
      trace_.counters.add(kCopiesWithoutSize);
    }
    const std::size_t launch = launches_[pass * program_.ops.size() + index];
    if (launch != kNoCall) made.launch = static_cast<std::uint32_t>(launch);
    trace_.device_ops.push_back(made);
  }

  static traces::DeviceOpKind device_kind(program::WorkKind kind) {
    switch (kind) {
      case program::WorkKind::kKernel: return traces::DeviceOpKind::kKernel;
      case program::WorkKind::kCollective: return traces::DeviceOpKind::kCollective;
      case program::WorkKind::kCopy: return traces::DeviceOpKind::kCopy;
      case program::WorkKind::kMemset: return traces::DeviceOpKind::kMemset;
    }
    return traces::DeviceOpKind::kKernel;
  }

  // A collective that meets no other rank has a group of its own, so that no reader joins it to
  // another rank's.
  std::uint32_t add_collective(const Op& op, std::uint64_t pass) {
    traces::Collective made;
    made.sequence_recorded = true;
    if (op.collective == kNoIndex) {
      made.group = trace_.names.intern("not joined, rank " + std::to_string(program_.rank));
      made.sequence = alone_++;
    } else {
      describe(job_.collectives[op.collective], labels_[op.collective], pass, made);
    }
    trace_.collectives.push_back(std::move(made));
    return static_cast<std::uint32_t>(trace_.collectives.size() - 1);
  }

  void describe(const workload::JoinedCollective& joined, const CollectiveLabel& label,
                std::uint64_t pass, traces::Collective& made) {
    made.kind = joined.kind;
    made.bytes = joined.bytes;
    made.group = trace_.names.intern(label.group);
    made.group_size = joined.group_size != 0 ? joined.group_size : joined.participants;
    made.sequence = pass * label.in_group + label.number;
    if (!joined.point_to_point) return;
    made.kind = label.from == program_.rank ? traces::CollectiveKind::kSend
                                            : traces::CollectiveKind::kRecv;
    made.peers = {label.from, label.to};
  }

  void add_edges(std::uint64_t pass) {
    const std::size_t first = pass * program_.ops.size();
    for (std::uint32_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      for (std::uint32_t e = op.first_edge; e < op.first_edge + op.edge_count; ++e) {
        const program::OpEdge& edge = program_.edges[e];
        if (edge.passes_back > pass) continue;
        const std::uint32_t before =
            places_[first - edge.passes_back * program_.ops.size() + edge.before];
        const std::uint32_t after = places_[first + i];
        if (before == kNoIndex || after == kNoIndex) continue;
        trace_.edges.push_back({DeviceOpId{before}, DeviceOpId{after}, false});
      }
    }
  }

  void sort() {
    const std::vector<std::uint32_t> calls = traces::places_by_start(trace_.host_calls);
    const std::vector<std::uint32_t> ops = traces::places_by_start(trace_.device_ops);
    for (std::size_t i = 0; i < trace_.host_calls.size(); ++i) {
      trace_.host_calls[i].correlation = i + 1;
    }
    for (traces::DeviceOp& op : trace_.device_ops) {
      if (op.launch == traces::kNone) continue;
      op.launch = calls[op.launch];
      op.correlation = op.launch + 1;
    }
    for (traces::Edge& edge : trace_.edges) {
      edge.before.value = ops[edge.before.index()];
      edge.after.value = ops[edge.after.index()];
    }
  }

  void add_markers() {
    const std::vector<RecordedMark>& marks = recording_.marks();
    std::int64_t number = 0;
    for (std::size_t i = 0; i + 1 < marks.size(); ++i) {
      if (marks[i].index >= program_.iterations) continue;
      if (marks[i].at >= end_) break;
      traces::Marker marker;
      marker.start = recorded(marks[i].at);
      marker.duration = marks[i + 1].at - marks[i].at;
      marker.name = trace_.names.intern("iteration");
      marker.thread = ThreadId{program_.marked_thread};
      marker.kind = traces::MarkerKind::kIteration;
      marker.number = number++;
      trace_.markers.push_back(marker);
    }
  }

  void add_memory() {
    for (std::uint64_t pass = 0; pass < recording_.passes(); ++pass) {
      for (const program::MemoryMark& mark : program_.memory) {
        if (!is_written(pass, mark.op)) continue;
        const TraceTime at = recorded(recording_.op(pass, mark.op).start);
        trace_.memory.push_back({at, mark.bytes, mark.bytes});
      }
    }
    std::ranges::stable_sort(trace_.memory, {}, &traces::MemorySample::at);
  }

  const workload::JobProgram& job_;
  const Program& program_;
  const std::vector<CollectiveLabel>& labels_;
  const RankRecording& recording_;
  std::size_t end_step_ = kNoCall;      ///< of the marked thread: the first that is not written
  SimTime end_ = SimTime::max();        ///< when that begins
  traces::RankTrace trace_;
  std::vector<std::size_t> launches_;   ///< of each operation of each pass, into host calls
  std::vector<std::uint32_t> places_;   ///< of each operation of each pass, into device ops
  std::vector<ShapeId> shapes_;         ///< of each profile
  std::uint64_t alone_ = 0;             ///< collectives without a peer, so far
};

// Threads, streams, calls, operations, edges, collectives, markers, memory and counters; what is
// the job's (device, world size, provenance) is the caller's. What begins after the first
// `iterations` iterations is left out.
traces::RankTrace make_rank_trace(const workload::JobProgram& job, const Program& program,
                                  const std::vector<CollectiveLabel>& labels,
                                  const RankRecording& recording, std::uint64_t iterations) {
  return RankWriter(job, program, labels, recording, iterations).run();
}

// ---- What a trace says of the GPU that a rank ran on, taken from a device's spec.

traces::DeviceInfo device_info(const hardware::GpuSpec& spec) {
  return {.name = spec.name,
          .sm_count = spec.sm_count,
          .compute_major = spec.compute_major,
          .compute_minor = spec.compute_minor,
          .memory_bytes = spec.memory.value};
}

std::uint32_t world_size(const workload::JobProgram& job, const RecordSetup& setup) {
  std::uint32_t size = std::max(setup.world_size, static_cast<std::uint32_t>(job.ranks.size()));
  for (const program::Program& rank : job.ranks) size = std::max(size, rank.rank + 1);
  return size;
}

std::string group_name(const workload::JobProgram& job, const workload::JoinedCollective& joined) {
  if (joined.group != program::kNoIndex) return job.groups[joined.group];
  if (joined.point_to_point) return "transfers";
  if (joined.participants == job.ranks.size()) return "world";
  return "groups of " + std::to_string(joined.participants);
}

void find_ends(const workload::JobProgram& job, std::vector<CollectiveLabel>& labels) {
  for (const program::Program& rank : job.ranks) {
    for (const program::Op& op : rank.ops) {
      if (op.collective == program::kNoIndex) continue;
      if (!job.collectives[op.collective].point_to_point) continue;
      if (job.collectives[op.collective].from != program::kNoIndex) continue;
      CollectiveLabel& label = labels[op.collective];
      (label.from == program::kNoIndex ? label.from : label.to) = rank.rank;
    }
  }
}

/// One a collective. A group without a name is named by what it holds; a transfer whose ends are
/// not known goes from the first of its ranks, in the job's order, to the second.
std::vector<CollectiveLabel> label_collectives(const workload::JobProgram& job) {
  std::vector<CollectiveLabel> labels;
  std::map<std::string, std::uint64_t> counts;
  labels.reserve(job.collectives.size());
  for (const workload::JoinedCollective& joined : job.collectives) {
    CollectiveLabel label;
    label.group = group_name(job, joined);
    label.number = counts[label.group]++;
    label.from = joined.from;
    label.to = joined.to;
    labels.push_back(std::move(label));
  }
  for (CollectiveLabel& label : labels) label.in_group = counts[label.group];
  find_ends(job, labels);
  return labels;
}

}  // namespace

Result<traces::JobTrace> record_trace(const workload::JobProgram& job,
                                      const hardware::GpuSpec& spec, const RecordSetup& setup) {
  if (job.ranks.empty()) return fail("found a job of no rank, expected at least one");
  if (setup.iterations == 0) return fail("found 0 iterations to record, expected at least 1");
  const std::uint32_t in_pass = std::max(1U, job.ranks.front().iterations);
  const std::uint64_t passes = (setup.iterations + in_pass - 1) / in_pass;
  std::vector<RankRecording> recordings;
  recordings.reserve(job.ranks.size());
  for (const program::Program& rank : job.ranks) recordings.emplace_back(rank, passes);
  workload::LoneJob lone(job, spec, {workload::Repeat::kLoop, passes, setup.perturbations},
                         workload::pointers_to(recordings));
  lone.run();
  BUBBLESIM_RETURN_IF_ERROR(lone.finished());
  const std::vector<CollectiveLabel> labels = label_collectives(job);
  traces::JobTrace trace;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    traces::RankTrace rank =
        make_rank_trace(job, job.ranks[i], labels, recordings[i], setup.iterations);
    rank.world_size = world_size(job, setup);
    rank.device = device_info(spec);
    rank.provenance = setup.provenance;
    rank.provenance.format = traces::kMadeFormat;
    trace.ranks.push_back(std::move(rank));
  }
  return trace;
}

}  // namespace bubblesim::synth
