// Choosing the window of a trace, and collecting the calls and operations in it.
#include <algorithm>
#include <map>

#include "sim/workload/build_counters.hpp"
#include "sim/workload/program_draft.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

bool is_launch(HostCallKind kind) {
  return kind == HostCallKind::kLaunchKernel || kind == HostCallKind::kLaunchGraph ||
         kind == HostCallKind::kCopy || kind == HostCallKind::kMemset;
}

bool may_wait(HostCallKind kind) {
  return kind == HostCallKind::kStreamSync || kind == HostCallKind::kDeviceSync ||
         kind == HostCallKind::kEventSync || kind == HostCallKind::kFree;
}

// Iteration markers of the thread that has most of them, by start.
std::vector<const traces::Marker*> iteration_markers(const traces::RankTrace& trace) {
  std::map<ThreadId, std::vector<const traces::Marker*>> by_thread;
  for (const traces::Marker& marker : trace.markers) {
    if (marker.kind == traces::MarkerKind::kIteration) by_thread[marker.thread].push_back(&marker);
  }
  std::vector<const traces::Marker*> best;
  for (auto& [thread, markers] : by_thread) {
    if (markers.size() > best.size()) best = markers;
  }
  std::stable_sort(best.begin(), best.end(),
                   [](const auto* a, const auto* b) { return a->start < b->start; });
  return best;
}

void set_whole_window(Draft& draft) {
  const traces::RankTrace& trace = *draft.trace;
  draft.begin = TraceTime::max();
  draft.end = TraceTime::min();
  for (const auto& call : trace.host_calls) {
    draft.begin = std::min(draft.begin, call.start);
    draft.end = std::max(draft.end, call.end());
  }
  for (const auto& op : trace.device_ops) {
    draft.begin = std::min(draft.begin, op.start);
    draft.end = std::max(draft.end, op.end());
  }
  for (const TraceTime start : draft.iteration_starts) draft.begin = std::min(draft.begin, start);
}

void set_iterations(Draft& draft) {
  const auto markers = iteration_markers(*draft.trace);
  draft.marked = !markers.empty();
  if (markers.empty()) {
    draft.counters.add(kUnmarked);
    return;
  }
  for (const auto* marker : markers) draft.iteration_starts.push_back(marker->start);
  draft.marked_thread = markers.front()->thread.value;
  draft.iterations_end = markers.back()->start + markers.back()->duration;
}

// Keeps only the iteration of median length (the shorter of two middle ones, the first of ties).
void keep_median_iteration(Draft& draft) {
  std::vector<TraceTime> ends(draft.iteration_starts.begin() + 1, draft.iteration_starts.end());
  ends.push_back(draft.iterations_end);
  std::vector<std::size_t> order(ends.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return ends[a] - draft.iteration_starts[a] < ends[b] - draft.iteration_starts[b];
  });
  const std::size_t median = order[(order.size() - 1) / 2];
  draft.iterations_end = ends[median];
  draft.iteration_starts = {draft.iteration_starts[median]};
}

// One iteration, from the first record to the last host call, on the thread that calls most.
void set_unmarked_iteration(Draft& draft) {
  const traces::RankTrace& trace = *draft.trace;
  draft.iteration_starts.push_back(draft.begin);
  draft.iterations_end = draft.begin;
  std::vector<std::size_t> calls(trace.threads.size() + 1);
  for (const auto& call : trace.host_calls) {
    draft.iterations_end = std::max(draft.iterations_end, call.end());
    ++calls[call.thread.index()];
  }
  if (trace.host_calls.empty()) draft.iterations_end = draft.end;
  const auto busiest = std::max_element(calls.begin(), calls.end()) - calls.begin();
  draft.marked_thread = trace.host_calls.empty() ? static_cast<std::uint32_t>(trace.threads.size())
                                                 : static_cast<std::uint32_t>(busiest);
}

void set_window(Draft& draft, const BuildOptions& options) {
  set_iterations(draft);
  set_whole_window(draft);
  if (!draft.marked) {
    set_unmarked_iteration(draft);
    return;
  }
  if (options.window == Window::kMedianIteration) keep_median_iteration(draft);
  if (options.window != Window::kWhole) {
    draft.begin = draft.iteration_starts.front();
    draft.end = draft.iterations_end;
  }
}

// A launch call's device operations, found through the operations' own link.
std::vector<std::vector<std::uint32_t>> ops_by_call(const traces::RankTrace& trace) {
  std::vector<std::vector<std::uint32_t>> result(trace.host_calls.size());
  for (std::uint32_t i = 0; i < trace.device_ops.size(); ++i) {
    const std::uint32_t launch = trace.device_ops[i].launch;
    if (launch != traces::kNone) result[launch].push_back(i);
  }
  return result;
}

void add_ops(Draft& draft, DraftCall& call, const std::vector<std::uint32_t>& ops) {
  call.first_op = static_cast<std::uint32_t>(draft.ops.size());
  call.op_count = static_cast<std::uint32_t>(ops.size());
  call.target = call.first_op;
  call.kind = StepKind::kLaunch;
  for (const std::uint32_t index : ops) {
    const traces::DeviceOp& recorded = draft.trace->device_ops[index];
    DraftOp op;
    op.recorded = &recorded;
    op.start = recorded.start;
    op.end = recorded.end();
    op.call = static_cast<std::uint32_t>(draft.calls.size());
    if (op.start < call.start) draft.counters.add(kBackwardTimes);
    draft.ops.push_back(std::move(op));
  }
}

// Spans in which the driver held a launching thread because its queue was full.
class FullQueues {
 public:
  explicit FullQueues(const traces::RankTrace& trace) : by_thread_(trace.threads.size()) {
    for (const traces::HostStall& stall : trace.stalls) {
      if (stall.kind == traces::StallKind::kQueueFull) {
        by_thread_[stall.thread.index()].push_back(stall);
      }
    }
  }
  /// How long `call` was held.
  [[nodiscard]] Duration held(const traces::HostCall& call) const {
    Duration sum{};
    const auto& stalls = by_thread_[call.thread.index()];
    auto stall = std::lower_bound(
        stalls.begin(), stalls.end(), call.start,
        [](const traces::HostStall& s, TraceTime at) { return s.start + s.duration <= at; });
    for (; stall != stalls.end() && stall->start < call.end(); ++stall) {
      sum += std::min(call.end(), stall->start + stall->duration) -
             std::max(call.start, stall->start);
    }
    return std::min(sum, call.duration);
  }

 private:
  std::vector<std::vector<traces::HostStall>> by_thread_;  ///< each by start
};

void collect_calls(Draft& draft) {
  const traces::RankTrace& trace = *draft.trace;
  const auto ops = ops_by_call(trace);
  const FullQueues queues(trace);
  for (std::size_t i = 0; i < trace.host_calls.size(); ++i) {
    const traces::HostCall& recorded = trace.host_calls[i];
    if (recorded.start < draft.begin || recorded.start >= draft.end) continue;
    DraftCall call;
    call.start = recorded.start;
    call.end = recorded.end();
    call.thread = recorded.thread.value;
    call.recorded_kind = recorded.kind;
    call.stream = recorded.stream;
    call.event = recorded.event;
    call.held = queues.held(recorded);
    if (!ops[i].empty()) {
      add_ops(draft, call, ops[i]);
    } else if (is_launch(recorded.kind)) {
      draft.counters.add(kLaunchesWithoutOp);
      continue;
    } else if (!may_wait(recorded.kind)) {
      continue;
    }
    draft.calls.push_back(std::move(call));
  }
}

// The call that launched each recorded operation, into Draft::calls.
std::vector<std::uint32_t> call_of_each(const Draft& draft) {
  std::vector<std::uint32_t> calls(draft.trace->device_ops.size(), kNoIndex);
  const traces::DeviceOp* first = draft.trace->device_ops.data();
  for (const DraftOp& op : draft.ops) {
    calls[static_cast<std::size_t>(op.recorded - first)] = op.call;
  }
  return calls;
}

// An operation without a launch counts as launched right after the operation before it on its
// stream, so that it keeps its place in the stream. One that nothing precedes was launched before
// the window: a thread of its own launches it as the window begins, to start when it did.
void collect_orphans(Draft& draft) {
  const traces::RankTrace& trace = *draft.trace;
  std::vector<std::uint32_t> calls = call_of_each(draft);
  std::vector<std::uint32_t> last_call(trace.streams.size(), kNoIndex);
  for (std::uint32_t i = 0; i < trace.device_ops.size(); ++i) {  // sorted by start
    const traces::DeviceOp& recorded = trace.device_ops[i];
    std::uint32_t& last = last_call[recorded.stream.index()];
    if (recorded.launch != traces::kNone) {
      if (calls[i] != kNoIndex) last = calls[i];
      continue;
    }
    if (recorded.start < draft.begin || recorded.start >= draft.end) continue;
    DraftCall call;
    call.recorded_kind = HostCallKind::kLaunchKernel;
    call.thread = static_cast<std::uint32_t>(trace.threads.size());
    call.start = call.end = draft.begin;
    if (last != kNoIndex && draft.calls[last].end <= recorded.start) {
      call.thread = draft.calls[last].thread;
      call.start = call.end = draft.calls[last].end;
    }
    add_ops(draft, call, {i});
    last = static_cast<std::uint32_t>(draft.calls.size());
    draft.calls.push_back(std::move(call));
    draft.counters.add(kOrphanOps);
  }
}

// The marked thread passes each iteration's begin, and the end of the last one.
void collect_markers(Draft& draft) {
  std::vector<DraftCall> marks;
  const auto add = [&](TraceTime at, StepKind kind) {
    DraftCall mark;
    mark.start = mark.end = at;
    mark.thread = draft.marked_thread;
    mark.kind = kind;
    mark.target = static_cast<std::uint32_t>(marks.size());
    marks.push_back(std::move(mark));
  };
  for (const TraceTime start : draft.iteration_starts) add(start, StepKind::kIteration);
  add(draft.iterations_end, StepKind::kEnd);
  draft.calls.insert(draft.calls.begin(), marks.begin(), marks.end());
  for (DraftOp& op : draft.ops) op.call += static_cast<std::uint32_t>(marks.size());
}

// Sorts the calls by start, with their operations in the same order.
void sort_calls(Draft& draft) {
  std::vector<std::uint32_t> order(draft.calls.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return draft.calls[a].start < draft.calls[b].start;
  });
  std::vector<DraftCall> calls;
  std::vector<DraftOp> ops;
  calls.reserve(draft.calls.size());
  ops.reserve(draft.ops.size());
  for (const std::uint32_t index : order) {
    DraftCall call = std::move(draft.calls[index]);
    const std::uint32_t first = call.first_op;
    if (first != kNoIndex) call.first_op = call.target = static_cast<std::uint32_t>(ops.size());
    for (std::uint32_t i = 0; i < call.op_count; ++i) {
      ops.push_back(std::move(draft.ops[first + i]));
      ops.back().call = static_cast<std::uint32_t>(calls.size());
    }
    calls.push_back(std::move(call));
  }
  draft.calls = std::move(calls);
  draft.ops = std::move(ops);
}

void index_streams_and_threads(Draft& draft) {
  draft.stream_ops.resize(draft.trace->streams.size());
  for (std::uint32_t i = 0; i < draft.ops.size(); ++i) {
    draft.stream_ops[draft.ops[i].recorded->stream.index()].push_back(i);
  }
  for (auto& ops : draft.stream_ops) {
    std::stable_sort(ops.begin(), ops.end(), [&](std::uint32_t a, std::uint32_t b) {
      return draft.ops[a].start < draft.ops[b].start;
    });
  }
  draft.thread_calls.resize(draft.trace->threads.size() + 1);
  for (std::uint32_t i = 0; i < draft.calls.size(); ++i) {
    draft.thread_calls[draft.calls[i].thread].push_back(i);
  }
}

}  // namespace

Draft collect(const traces::RankTrace& trace, const BuildOptions& options) {
  Draft draft;
  draft.trace = &trace;
  set_window(draft, options);
  collect_calls(draft);
  collect_orphans(draft);
  collect_markers(draft);
  sort_calls(draft);
  index_streams_and_threads(draft);
  return draft;
}

void trim_overlaps(Draft& draft) {
  for (const auto& ops : draft.stream_ops) {
    for (std::size_t i = 1; i < ops.size(); ++i) {
      const DraftOp& before = draft.ops[ops[i - 1]];
      DraftOp& op = draft.ops[ops[i]];
      op.previous = ops[i - 1];
      if (op.start >= before.end) continue;
      draft.counters.add(kTrimmedOverlaps);
      op.start = before.end;
      op.end = std::max(op.end, op.start);
    }
  }
}

}  // namespace bubblesim::workload
