// Writes a finished draft as a program.
#include <algorithm>
#include <map>
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
  Emitter(const Draft& draft, const hardware::GpuSpec& spec)
      : draft_(draft), spec_(spec), estimator_(*draft.trace, spec) {
    places_.resize(draft.calls.size());
    classes_.resize(draft.trace->names.size());
  }

  program::Program run() {
    program_.rank = draft_.trace->rank;
    program_.counters = draft_.counters;
    program_.names = draft_.trace->names;
    program_.stream_count = static_cast<std::uint16_t>(draft_.trace->streams.size());
    program_.marked_thread = draft_.marked_thread;
    program_.iterations = static_cast<std::uint32_t>(draft_.iteration_starts.size());
    for (const DraftOp& op : draft_.ops) emit_op(op);
    estimated_.count(program_.counters);
    for (std::uint32_t i = 0; i < draft_.thread_calls.size(); ++i) emit_thread(i);
    resolve_hand_overs();
    assign_result_slots();
    set_recorded_times();
    return std::move(program_);
  }

 private:
  struct Place {
    std::uint32_t thread = 0;
    std::uint32_t step = 0;  // the call's last step
  };

  program::ShortSpan span(Duration value) {
    if (value > program::kLongestShortSpan) program_.counters.add(kClampedSpans);
    return program::short_span(value);
  }

  void emit_op(const DraftOp& draft_op) {
    const traces::DeviceOp& recorded = *draft_op.recorded;
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
    op.edge_count = static_cast<std::uint8_t>(draft_op.edges.size());
    for (const DraftEdge& edge : draft_op.edges) {
      program_.edges.push_back({edge.before, span(edge.lag)});
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
    const auto [place, fresh] = profiles_.try_emplace(
        {id, kernel_class}, static_cast<std::uint32_t>(program_.profiles.size()));
    if (fresh) {
      const traces::LaunchShape& shape =
          known ? trace.shapes[id]
                : estimated_shapes_[ShapeId{
                      id.value - static_cast<std::uint32_t>(trace.shapes.size())}];
      program_.profiles.push_back(
          program::profile_kernel(launch_needs(shape), kernel_class, spec_));
      program_.shapes.push_back(shape);
    }
    return place->second;
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
    for (const std::uint32_t call : calls) {
      emit_call(thread, index, call, previous);
      previous = std::max(previous, draft_.calls[call].end);
    }
    program_.threads.push_back(std::move(thread));
  }

  void emit_pause(program::ThreadProgram& thread, Duration length, Duration keep) {
    while (length > keep) {
      const Duration part = std::min(length - keep, program::kLongestShortSpan);
      program::Step pause;
      pause.think = program::short_span(part);
      thread.steps.push_back(pause);
      length -= part;
    }
  }

  void emit_call(program::ThreadProgram& thread, std::uint32_t index, std::uint32_t number,
                 TraceTime previous) {
    const DraftCall& call = draft_.calls[number];
    const TraceTime base = call.after == program::kNoIndex
                               ? previous
                               : std::max(previous, draft_.calls[call.after].end);
    Duration think = std::max(Duration{}, call.start - base);
    if (call.after == program::kNoIndex && think > program::kLongestShortSpan) {
      emit_pause(thread, think, program::kLongestShortSpan);
      think = program::kLongestShortSpan;
    }
    program::Step step;
    step.think = span(think);
    step.cost = span(call.cost);
    step.kind = call.kind;
    step.target = call.target;
    if (call.waits || call.after != program::kNoIndex) {
      step.detail = static_cast<std::uint32_t>(program_.details.size());
      program_.details.push_back({span(call.return_lag), program::kNoIndex, 0, call.passes_back});
      if (call.after != program::kNoIndex) hand_overs_.push_back({step.detail, call.after});
    }
    if (call.queue_op != program::kNoIndex) emit_queue_wait(thread, call, step);
    emit_parts(thread, step, call.op_count);
    places_[number] = {index, static_cast<std::uint32_t>(thread.steps.size() - 1)};
  }

  // What made room in the launch queue, before the launch itself.
  void emit_queue_wait(program::ThreadProgram& thread, const DraftCall& call,
                       program::Step& launch) {
    program::Step wait;
    wait.think = std::exchange(launch.think, {});
    wait.kind = program::StepKind::kWaitOp;
    wait.target = call.queue_op;
    wait.detail = std::exchange(launch.detail, program::kNoIndex);
    if (wait.detail == program::kNoIndex) {
      wait.detail = static_cast<std::uint32_t>(program_.details.size());
      program_.details.push_back({});
    }
    program_.details[wait.detail].return_lag = span(call.queue_lag);
    thread.steps.push_back(wait);
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
      program_.details[detail].after_thread = places_[call].thread;
      program_.details[detail].after_step = places_[call].step;
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

  const Draft& draft_;
  const hardware::GpuSpec& spec_;
  program::Program program_;
  ShapeEstimator estimator_;
  EstimatedTime estimated_;
  traces::ShapeTable<traces::LaunchShape> estimated_shapes_;
  std::map<std::pair<ShapeId, program::KernelClass>, std::uint32_t> profiles_;
  std::vector<std::optional<program::KernelClass>> classes_;  ///< by name, once asked for
  std::vector<Place> places_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> hand_overs_;
};

}  // namespace

program::Program emit(const Draft& draft, const hardware::GpuSpec& spec) {
  return Emitter(draft, spec).run();
}

}  // namespace bubblesim::workload
