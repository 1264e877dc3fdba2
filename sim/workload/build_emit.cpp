// Writes a finished draft as a program.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sim/program/kernel_class.hpp"
#include "sim/workload/build_counters.hpp"
#include "sim/workload/estimated_shape.hpp"
#include "sim/workload/program_draft.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::workload {
namespace {

constexpr std::uint32_t kMostOpsInStep = UINT16_MAX;

class Emitter {
 public:
  Emitter(Draft draft, const hardware::GpuSpec& spec, std::vector<CallPlace>& places)
      : draft_(std::move(draft)), spec_(spec), estimator_(*draft_.trace, spec),
        classes_(draft_.trace->names.size()), places_(places) {}

  program::Program run() {
    program_.rank = draft_.trace->rank;
    program_.counters = draft_.counters;
    program_.names = draft_.trace->names;
    program_.stream_count = static_cast<std::uint16_t>(draft_.trace->streams.size());
    program_.marked_thread = draft_.marked_thread;
    program_.marked = draft_.marked;
    program_.overruns = draft_.overruns;
    program_.ops_without_launch = draft_.ops_without_launch;
    program_.iterations = static_cast<std::uint32_t>(draft_.iteration_starts.size());
    set_recorded_times();
    program_.ops.reserve(draft_.ops.size());
    program_.edges.reserve(draft_.edges.size());
    for (const DraftOp& op : draft_.ops) emit_op(op);
    estimated_.count(program_.counters);
    std::vector<DraftOp>().swap(draft_.ops);  // before steps need room
    std::vector<std::vector<std::uint32_t>>().swap(draft_.stream_ops);
    steps_.resize(draft_.calls.size());
    for (std::uint32_t i = 0; i < draft_.thread_calls.size(); ++i) emit_thread(i);
    resolve_hand_overs();
    assign_result_slots();
    std::ranges::sort(places_, {}, &CallPlace::call);
    return std::move(program_);
  }

 private:
  program::ShortSpan span(Duration value) {
    if (value > program::kLongestShortSpan) program_.counters.add(kClampedSpans);
    return program::short_span(value);
  }

  void emit_op(const DraftOp& draft_op) {
    const traces::DeviceOp& recorded = draft_.recorded(draft_op);
    program::Op op;
    op.duration = draft_op.end - draft_op.start;
    op.launch_lag = span(draft_op.launch_lag);
    op.gap = span(draft_op.gap);
    op.name = recorded.name;
    op.stream = static_cast<std::uint16_t>(recorded.stream.value);
    op.kind = work_kind(recorded.kind);
    if (op.kind == program::WorkKind::kKernel || op.kind == program::WorkKind::kCollective) {
      op.profile = profile_of(recorded);
    }
    op.first_edge = static_cast<std::uint32_t>(program_.edges.size());
    for (std::uint32_t i = draft_op.first_edge; i != program::kNoIndex; i = draft_.edges[i].next) {
      const DraftEdge& edge = draft_.edges[i];
      program_.edges.push_back({edge.before, span(edge.lag), edge.passes_back});
      ++op.edge_count;
    }
    program_.ops.push_back(op);
  }

  static program::WorkKind work_kind(traces::DeviceOpKind kind) {
    switch (kind) {
      case traces::DeviceOpKind::kKernel: return program::WorkKind::kKernel;
      case traces::DeviceOpKind::kCollective: return program::WorkKind::kCollective;
      case traces::DeviceOpKind::kCopy: return program::WorkKind::kCopy;
      case traces::DeviceOpKind::kMemset: return program::WorkKind::kMemset;
    }
    return program::WorkKind::kKernel;
  }

  std::uint32_t profile_of(const traces::DeviceOp& op) {
    const traces::RankTrace& trace = *draft_.trace;
    const program::KernelClass kernel_class = class_of(op.name);
    const bool known = has_known_shape(trace, op);
    note_kernel_time(op, known);
    ShapeId id = op.shape;
    if (!known) {
      // Estimated shapes are numbered after the recorded ones.
      id = estimated_shapes_.intern(estimator_.estimate(op, kernel_class));
      id.value += static_cast<std::uint32_t>(trace.shapes.size());
    }
    std::uint32_t& profile = profile_place(id, kernel_class);
    if (profile != program::kNoIndex) return profile;
    profile = static_cast<std::uint32_t>(program_.profiles.size());
    const traces::LaunchShape& shape =
        known ? trace.shapes[id]
              : estimated_shapes_[ShapeId{
                    id.value - static_cast<std::uint32_t>(trace.shapes.size())}];
    program_.profiles.push_back(program::profile_kernel(launch_needs(shape), kernel_class, spec_));
    program_.shapes.push_back(shape);
    return profile;
  }

  /// Where the profile of a shape and class is, into Program::profiles; kNoIndex: not made yet.
  std::uint32_t& profile_place(ShapeId shape, program::KernelClass kernel_class) {
    constexpr std::size_t kClasses = 3;
    const std::size_t place = kClasses * shape.index() + static_cast<std::size_t>(kernel_class);
    if (place >= profiles_.size()) profiles_.resize(place + kClasses, program::kNoIndex);
    return profiles_[place];
  }

  /// Names are few, operations many.
  program::KernelClass class_of(NameId name) {
    std::optional<program::KernelClass>& known = classes_[name.value];
    if (!known) known = program::classify_kernel(draft_.trace->names[name]);
    return *known;
  }

  void note_kernel_time(const traces::DeviceOp& op, bool known) {
    const bool kernel = op.kind == traces::DeviceOpKind::kKernel;
    const Duration length = kernel ? std::max(Duration{}, op.duration) : Duration{};
    estimated_.kernels += length;
    if (known) return;
    estimated_.estimated += length;
    ++estimated_.launches;
  }

  void emit_thread(std::uint32_t index) {
    program::ThreadProgram thread;
    thread.name = index < draft_.trace->threads.size() ? draft_.trace->threads[index].name
                                                       : "launched outside the trace";
    TraceTime previous = draft_.begin;
    const auto& calls = draft_.thread_calls[index];
    thread.steps.reserve(calls.size());
    for (const std::uint32_t call : calls) {
      emit_call(thread, call, previous);
      previous = std::max(previous, draft_.calls[call].end);
    }
    program_.threads.push_back(std::move(thread));
  }

  /// Pauses that make up what a step cannot hold of a span.
  void emit_excess(program::ThreadProgram& thread, Duration length) {
    while (length > program::kLongestShortSpan) {
      length -= program::kLongestShortSpan;
      program::Step pause;
      pause.think = program::short_span(length);
      thread.steps.push_back(pause);
    }
  }

  /// Into Program::details.
  std::uint32_t add_detail(const program::StepDetail& detail) {
    program_.details.push_back(detail);
    return static_cast<std::uint32_t>(program_.details.size() - 1);
  }

  // Think time begins with the first of the steps, what a call takes ends with the last.
  void emit_call(program::ThreadProgram& thread, std::uint32_t number, TraceTime previous) {
    const DraftCall& call = draft_.calls[number];
    const DraftWait& wait = std::as_const(draft_).wait_of(call);
    const bool handed_over = wait.after != program::kNoIndex;
    const bool of_peer = draft_.has_peer(call);
    TraceTime base = previous;
    if (handed_over) base = std::max(base, draft_.calls[wait.after].end);
    if (of_peer && wait.peer.passes_back == 0) {
      base = std::max(base, draft_.called(wait.peer.end));
    }
    const Duration think = std::max(Duration{}, call.start - base);
    const std::size_t first = thread.steps.size();
    emit_excess(thread, think);
    program::Step step;
    step.think = program::short_span(think);
    step.cost = program::short_span(call.cost);
    step.kind = call.kind;
    step.target = call.target;
    if (wait.returns) {
      step.detail = add_detail(
          {program::short_span(wait.return_lag), program::kNoIndex, 0, wait.passes_back});
    }
    if (handed_over || of_peer) {
      program::Step& begins = thread.steps.size() > first ? thread.steps[first] : step;
      if (begins.detail == program::kNoIndex) begins.detail = add_detail({});
      if (handed_over) hand_overs_.push_back({begins.detail, wait.after});
      if (of_peer) come_after(wait.peer, program_.details[begins.detail]);
    }
    if (wait.queue_op != program::kNoIndex) emit_queue_wait(thread, wait, step);
    for (std::uint32_t i = wait.first_also; i != program::kNoIndex; i = draft_.edges[i].next) {
      emit_wait_before(thread, draft_.edges[i], step);
    }
    emit_parts(thread, step, call.op_count);
    emit_excess(thread, call.cost);
    emit_excess(thread, wait.return_lag);
    steps_[number] = static_cast<std::uint32_t>(thread.steps.size() - 1);
    if (draft_.trace->process != 0 && call.recorded != traces::kNone) {
      places_.push_back({call.recorded, call.thread, steps_[number]});
    }
  }

  static void come_after(const PeerCall& peer, program::StepDetail& detail) {
    detail.after_rank = peer.rank;
    detail.after_step = peer.call;  // until its step is known (resolve_peers)
    detail.after_passes_back = peer.passes_back;
  }

  // What a call waits for besides: the call begins with it, and a hand-over is to it.
  void emit_wait_before(program::ThreadProgram& thread, const DraftEdge& awaited,
                        program::Step& last) {
    program::Step step;
    step.think = std::exchange(last.think, {});
    step.cost = std::exchange(last.cost, {});
    step.kind = program::StepKind::kWaitOp;
    step.target = awaited.before;
    step.detail = std::exchange(last.detail, add_detail(program_.details[last.detail]));
    program_.details[step.detail].return_lag = program::short_span(awaited.lag);
    program_.details[step.detail].passes_back = awaited.passes_back;
    thread.steps.push_back(step);
    emit_excess(thread, awaited.lag);
  }

  // What made room in the launch queue, before the launch itself.
  void emit_queue_wait(program::ThreadProgram& thread, const DraftWait& wait,
                       program::Step& launch) {
    program::Step step;
    step.think = std::exchange(launch.think, {});
    step.kind = program::StepKind::kWaitOp;
    step.target = wait.queue_op;
    step.detail = std::exchange(launch.detail, program::kNoIndex);
    if (step.detail == program::kNoIndex) step.detail = add_detail({});
    program_.details[step.detail].return_lag = program::short_span(wait.queue_lag);
    thread.steps.push_back(step);
    emit_excess(thread, wait.queue_lag);
  }

  // A launch of more operations than a step can count becomes several steps.
  void emit_parts(program::ThreadProgram& thread, program::Step step, std::uint32_t count) {
    while (count > kMostOpsInStep) {
      program::Step part = step;
      part.kind = program::StepKind::kLaunch;
      part.cost = {};
      part.count = kMostOpsInStep;
      thread.steps.push_back(part);
      step.target += kMostOpsInStep;
      step.think = {};
      step.detail = program::kNoIndex;
      count -= kMostOpsInStep;
    }
    step.count = static_cast<std::uint16_t>(count);
    thread.steps.push_back(step);
  }

  void resolve_hand_overs() {
    for (const auto& [detail, call] : hand_overs_) {
      program_.details[detail].after_thread = draft_.calls[call].thread;
      program_.details[detail].after_step = steps_[call];
    }
  }

  void assign_result_slots() {
    const auto need = [&](std::uint32_t op) {
      if (program_.ops[op].result_slot == program::kNoIndex) {
        program_.ops[op].result_slot = program_.result_slots++;
      }
    };
    for (const program::OpEdge& edge : program_.edges) need(edge.before);
    for (const program::ThreadProgram& thread : program_.threads) {
      for (const program::Step& step : thread.steps) {
        if (step.kind == program::StepKind::kWaitOp) need(step.target);
      }
    }
  }

  void set_recorded_times() {
    TraceTime end = draft_.begin;
    for (const DraftOp& op : draft_.ops) end = std::max(end, op.end);
    for (const DraftCall& call : draft_.calls) end = std::max(end, call.end);
    program_.recorded_span = end - draft_.begin;
    set_device_span();
    const auto& starts = draft_.iteration_starts;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const TraceTime next = i + 1 < starts.size() ? starts[i + 1] : draft_.iterations_end;
      program_.recorded_iterations.push_back(next - starts[i]);
    }
  }

  void set_device_span() {
    TraceTime first = TraceTime::max();
    TraceTime last = TraceTime::min();
    for (const DraftOp& op : draft_.ops) {
      first = std::min(first, op.start);
      last = std::max(last, op.end);
    }
    program_.recorded_device_span = last - first;
  }

  Draft draft_;
  const hardware::GpuSpec& spec_;
  program::Program program_;
  ShapeEstimator estimator_;
  EstimatedTime estimated_;
  traces::ShapeTable<traces::LaunchShape> estimated_shapes_;
  std::vector<std::uint32_t> profiles_;  ///< by shape and class: profile_place()
  std::vector<std::optional<program::KernelClass>> classes_;  ///< by name, once asked for
  std::vector<std::uint32_t> steps_;  ///< by call: its last step, in its thread
  std::vector<std::pair<std::uint32_t, std::uint32_t>> hand_overs_;
  std::vector<CallPlace>& places_;
};

}  // namespace

program::Program emit(Draft draft, const hardware::GpuSpec& spec, std::vector<CallPlace>& places) {
  return Emitter(std::move(draft), spec, places).run();
}

}  // namespace bubblesim::workload
