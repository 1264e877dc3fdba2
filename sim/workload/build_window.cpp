// Choosing the window of a trace, and collecting the calls and operations in it.
#include <algorithm>
#include <map>

#include "sim/workload/build_counters.hpp"
#include "sim/workload/polling.hpp"
#include "sim/workload/program_draft.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

constexpr Duration kMostSkew = std::chrono::microseconds(200);
constexpr std::size_t kPercentSkewed = 5;

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

void set_recording(Draft& draft) {
  set_iterations(draft);
  set_whole_window(draft);
  if (!draft.marked) set_unmarked_iteration(draft);
}

// Operations that start before their launch say that the host's clock is ahead of the device's: by
// as much as the worst of them, if they are more than a few. Measured: 17 to 46 us on some ranks of
// TorchRec's V100 jobs, where most operations do so and synchronisations return 60 us late.
Duration lateness(const Draft& draft) {
  const traces::RankTrace& trace = *draft.trace;
  Duration most{};
  std::size_t held = 0;
  std::size_t early = 0;
  for (std::size_t i = 0; i < trace.device_ops.size(); ++i) {
    const traces::DeviceOp& op = trace.device_ops[i];
    if (!draft.pass->holds_op(i) || op.launch == traces::kNone) continue;
    ++held;
    const Duration lead = trace.host_calls[op.launch].start - op.start;
    if (lead <= Duration{} || lead > kMostSkew) continue;
    ++early;
    most = std::max(most, lead);
  }
  return 100 * early > kPercentSkewed * held ? most : Duration{};
}

void set_pass(Draft& draft) {
  const traces::RankPass& pass = *draft.pass;
  draft.marked = pass.marked;
  draft.marked_thread = pass.thread;
  if (!pass.marked) draft.counters.add(kUnmarked);
  draft.counters.merge(pass.counters);
  draft.host_late = lateness(draft);
  if (draft.host_late > Duration{}) draft.counters.add(kHostClocksSet);
  draft.begin = draft.called(pass.host.begin);
  draft.end = draft.called(pass.host.end);
  for (std::size_t i = pass.first; i < pass.first + pass.count; ++i) {
    draft.iteration_starts.push_back(draft.called(pass.recorded[i].host.begin));
  }
  draft.iterations_end = draft.end;
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
  call.kind = program::StepKind::kLaunch;
  for (const std::uint32_t index : ops) {
    const traces::DeviceOp& recorded = draft.trace->device_ops[index];
    DraftOp op;
    op.recorded = &recorded;
    op.start = draft.moved(recorded.start);
    op.end = draft.moved(recorded.end());
    op.call = static_cast<std::uint32_t>(draft.calls.size());
    if (op.start < call.start) draft.counters.add(kBackwardTimes);
    draft.ops.push_back(std::move(op));
  }
}

void collect_calls(Draft& draft) {
  const traces::RankTrace& trace = *draft.trace;
  const auto ops = ops_by_call(trace);
  const LaunchQueues queues(trace);
  for (std::size_t i = 0; i < trace.host_calls.size(); ++i) {
    const traces::HostCall& recorded = trace.host_calls[i];
    if (!draft.holds(recorded.start)) continue;
    DraftCall call;
    call.start = draft.called(recorded.start);
    call.end = draft.called(recorded.end());
    if (draft.pass != nullptr) call.end = std::min(call.end, draft.end);
    call.thread = recorded.thread.value;
    call.recorded_kind = recorded.kind;
    call.stream = recorded.stream;
    call.event = recorded.event;
    if (!ops[i].empty()) {
      call.queue = queues.wait_of(static_cast<std::uint32_t>(i), ops[i].front());
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

// A thread that asked until an operation had ended waited for it.
void collect_polls(Draft& draft) {
  const std::vector<traces::HostCall>& calls = draft.trace->host_calls;
  for (const Poll& poll : find_polls(*draft.trace)) {
    if (!draft.holds(calls[poll.first].start)) continue;
    DraftCall wait;
    wait.start = draft.called(calls[poll.first].start);
    wait.end = draft.called(calls[poll.last].end());
    if (draft.pass != nullptr) wait.end = std::min(wait.end, draft.end);
    wait.thread = calls[poll.first].thread.value;
    wait.recorded_kind = HostCallKind::kEventSync;
    wait.event = calls[poll.last].event;
    draft.calls.push_back(std::move(wait));
  }
}

// The call that launched each recorded operation, into Draft::calls.
std::vector<std::uint32_t> call_of_each(const Draft& draft) {
  std::vector<std::uint32_t> calls(draft.trace->device_ops.size(), program::kNoIndex);
  const traces::DeviceOp* first = draft.trace->device_ops.data();
  for (const DraftOp& op : draft.ops) {
    calls[static_cast<std::size_t>(op.recorded - first)] = op.call;
  }
  return calls;
}

// An operation without a launch counts as launched right after the operation before it on its
// stream, so that it keeps its place in the stream. One that nothing precedes is launched by a
// thread of its own as the window begins, to start when it did: in a whole recording it was queued
// before; in a pass its stream is one of which no launch was recorded.
void collect_orphans(Draft& draft) {
  const traces::RankTrace& trace = *draft.trace;
  std::vector<std::uint32_t> calls = call_of_each(draft);
  std::vector<std::uint32_t> last_call(trace.streams.size(), program::kNoIndex);
  for (std::uint32_t i = 0; i < trace.device_ops.size(); ++i) {  // sorted by start
    const traces::DeviceOp& recorded = trace.device_ops[i];
    std::uint32_t& last = last_call[recorded.stream.index()];
    if (recorded.launch != traces::kNone) {
      if (calls[i] != program::kNoIndex) last = calls[i];
      continue;
    }
    if (draft.pass != nullptr ? !draft.pass->holds_op(i) : !draft.holds(recorded.start)) continue;
    DraftCall call;
    call.recorded_kind = HostCallKind::kLaunchKernel;
    call.thread = static_cast<std::uint32_t>(trace.threads.size());
    call.start = call.end = draft.begin;
    if (last != program::kNoIndex && draft.calls[last].end <= draft.moved(recorded.start)) {
      call.thread = draft.calls[last].thread;
      call.start = call.end = draft.calls[last].end;
    }
    add_ops(draft, call, {i});
    last = static_cast<std::uint32_t>(draft.calls.size());
    draft.calls.push_back(std::move(call));
    draft.counters.add(kOrphanOps);
  }
}

// The host's lead over the device stays what it was: where a pass takes longer than its host, the
// marked thread waits at its end for the work that had been done by then.
void close_pass(Draft& draft) {
  const TraceTime end = draft.begin + draft.pass->length;
  if (end <= draft.iterations_end) return;
  DraftCall wait;
  wait.start = draft.iterations_end;
  wait.end = end;
  wait.thread = draft.marked_thread;
  wait.closes_pass = true;
  draft.calls.push_back(std::move(wait));
  draft.iterations_end = end;
}

// The marked thread passes each iteration's begin, and the end of the last one.
void collect_markers(Draft& draft) {
  std::vector<DraftCall> marks;
  const auto add = [&](TraceTime at, program::StepKind kind) {
    DraftCall mark;
    mark.start = mark.end = at;
    mark.thread = draft.marked_thread;
    mark.kind = kind;
    mark.target = static_cast<std::uint32_t>(marks.size());
    marks.push_back(std::move(mark));
  };
  for (const TraceTime start : draft.iteration_starts) add(start, program::StepKind::kIteration);
  add(draft.iterations_end, program::StepKind::kEnd);
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
    if (first != program::kNoIndex)
      call.first_op = call.target = static_cast<std::uint32_t>(ops.size());
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

Draft collect(const traces::RankTrace& trace, const traces::RankPass* pass, Window window) {
  Draft draft;
  draft.trace = &trace;
  draft.pass = pass;
  if (pass == nullptr) {
    set_recording(draft);
  } else {
    set_pass(draft);
  }
  collect_calls(draft);
  collect_polls(draft);
  collect_orphans(draft);
  if (window == Window::kIterations) close_pass(draft);
  collect_markers(draft);
  sort_calls(draft);
  index_streams_and_threads(draft);
  return draft;
}

void trim_overlaps(Draft& draft) {
  for (std::uint32_t stream = 0; stream < draft.stream_ops.size(); ++stream) {
    const auto& ops = draft.stream_ops[stream];
    if (!ops.empty()) draft.ops[ops.front()].pass_before = draft.pass_before(stream);
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
