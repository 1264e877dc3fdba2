// Collecting the calls and operations of a window, in the order in which they start.
#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/workload/build_counters.hpp"
#include "sim/workload/polling.hpp"
#include "sim/workload/program_draft.hpp"
#include "traces/sort_records.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

/// The device operations of each launch call, found through the operations' own link.
class LaunchedOps {
 public:
  explicit LaunchedOps(const traces::RankTrace& trace)
      : first_(trace.host_calls.size() + 1), ops_(trace.device_ops.size()) {
    for (const traces::DeviceOp& op : trace.device_ops) {
      if (op.launch != traces::kNone) ++first_[op.launch + 1];
    }
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t i = 0; i < ops_.size(); ++i) {
      const std::uint32_t launch = trace.device_ops[i].launch;
      if (launch != traces::kNone) ops_[next[launch]++] = i;
    }
  }
  /// In recorded order.
  [[nodiscard]] std::span<const std::uint32_t> ops_of(std::size_t call) const {
    return std::span(ops_).subspan(first_[call], first_[call + 1] - first_[call]);
  }

 private:
  std::vector<std::uint32_t> first_;  ///< by call, into `ops_`; one more for the end
  std::vector<std::uint32_t> ops_;    ///< into device_ops, by call
};

/// Calls with their operations; those of a call are `op_count` from `target` on.
struct Calls {
  std::vector<DraftCall> calls;
  std::vector<DraftOp> ops;
};

void add_ops(Draft& draft, DraftCall& call, std::span<const std::uint32_t> recorded,
             std::vector<DraftOp>& ops) {
  call.target = static_cast<std::uint32_t>(ops.size());
  call.op_count = static_cast<std::uint32_t>(recorded.size());
  call.kind = program::StepKind::kLaunch;
  for (const std::uint32_t index : recorded) {
    DraftOp op;
    op.recorded = index;
    op.start = draft.ran(index, draft.trace->device_ops[index].start);
    op.end = draft.ran(index, draft.trace->device_ops[index].end());
    if (op.start < call.start) draft.counters.add(kBackwardTimes);
    ops.push_back(op);
  }
}

// Room for all of the window at once: lists that grow hold everything twice for a moment.
void reserve(Draft& draft, const LaunchedOps& launched) {
  const traces::RankTrace& trace = *draft.trace;
  std::size_t calls = draft.iteration_starts.size() + 2;  // marks, and what closes the pass
  std::size_t ops = 0;
  for (std::size_t i = 0; i < trace.host_calls.size(); ++i) {
    const traces::HostCall& recorded = trace.host_calls[i];
    const std::size_t count = launched.ops_of(i).size();
    if ((count == 0 && !may_wait(trace, recorded)) || !draft.holds(recorded.start)) continue;
    ++calls;
    ops += count;
  }
  draft.calls.reserve(calls);
  draft.ops.reserve(ops);
}

// A call that neither launches nor waits is part of its thread's think time.
void collect_calls(Draft& draft) {
  const traces::RankTrace& trace = *draft.trace;
  const LaunchedOps launched(trace);
  const traces::LaunchQueues queues(trace);
  reserve(draft, launched);
  for (std::uint32_t i = 0; i < trace.host_calls.size(); ++i) {
    const traces::HostCall& recorded = trace.host_calls[i];
    if (!draft.holds(recorded.start)) continue;
    const std::span<const std::uint32_t> ops = launched.ops_of(i);
    if (ops.empty() && is_launch(recorded.kind)) draft.counters.add(kLaunchesWithoutOp);
    if (ops.empty() && !may_wait(trace, recorded)) continue;
    DraftCall call{.start = draft.called(recorded.start), .end = draft.called(recorded.end())};
    if (draft.pass != nullptr) call.end = std::min(call.end, draft.end);
    call.thread = recorded.thread.value;
    call.recorded = i;
    call.recorded_kind = recorded.kind;
    if (!ops.empty()) {
      traces::QueueWait queue = queues.wait_of(i, ops.front());
      // What of it was for work from before the pass is no longer part of the call.
      const Duration kept = draft.moved(recorded.end()) - draft.moved(recorded.start);
      queue.held = std::max(Duration{}, queue.held - (recorded.duration - kept));
      if (queue.held != Duration::zero()) draft.wait_of(call).queue = queue;
      add_ops(draft, call, ops, draft.ops);
    }
    draft.calls.push_back(call);
  }
}

// A thread that asked until an operation had ended waited for it.
void collect_polls(Draft& draft, Calls& late) {
  const std::vector<traces::HostCall>& calls = draft.trace->host_calls;
  for (const Poll& poll : find_polls(*draft.trace, draft.host_ahead)) {
    if (!draft.holds(calls[poll.first].start)) continue;
    DraftCall wait;
    wait.start = draft.called(calls[poll.first].start);
    wait.end = draft.called(calls[poll.last].end());
    if (draft.pass != nullptr) wait.end = std::min(wait.end, draft.end);
    wait.thread = calls[poll.first].thread.value;
    wait.recorded = poll.last;
    wait.recorded_kind = HostCallKind::kEventSync;
    late.calls.push_back(wait);
  }
}

/// Which operations of a recording have no launch, but are part of the window: those that end it
/// last.
std::vector<std::uint32_t> orphans(const Draft& draft) {
  std::vector<std::uint32_t> found;
  const std::vector<traces::DeviceOp>& ops = draft.trace->device_ops;
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    if (ops[i].launch != traces::kNone) continue;
    if (draft.pass != nullptr ? draft.pass->holds_op(i) : ops[i].start < draft.end) {
      found.push_back(i);
    }
  }
  const auto in_place = [&](std::uint32_t op) { return !draft.is_kept(op); };
  std::ranges::stable_partition(found, in_place);
  return found;
}

/// Who launched the last operation of a stream, and when the call returned.
struct LastLaunch {
  std::uint32_t thread = 0;
  TraceTime end{};
};

// An operation without a launch counts as launched right after the operation before it on its
// stream, so that it keeps its place in the stream. One that nothing precedes is launched by a
// thread of its own as the window begins, to start when it did: in a whole recording it was queued
// before; in a pass its stream is one of which no launch was recorded.
void collect_orphans(Draft& draft, Calls& late) {
  const traces::RankTrace& trace = *draft.trace;
  const std::vector<std::uint32_t> found = orphans(draft);
  if (found.empty()) return;
  const std::vector<std::uint32_t> places = place_of_each(draft);
  std::vector<std::optional<LastLaunch>> last_launch(trace.streams.size());
  std::uint32_t next = 0;  // operations are sorted by start
  for (const std::uint32_t orphan : found) {
    const auto before = draft.is_kept(orphan) ? static_cast<std::uint32_t>(places.size()) : orphan;
    for (; next < before; ++next) {
      if (places[next] == program::kNoIndex) continue;
      const DraftCall& call = draft.calls[draft.ops[places[next]].call];
      last_launch[trace.device_ops[next].stream.index()] = {call.thread, call.end};
    }
    const traces::DeviceOp& recorded = trace.device_ops[orphan];
    std::optional<LastLaunch>& last = last_launch[recorded.stream.index()];
    DraftCall call;
    call.recorded_kind = HostCallKind::kLaunchKernel;
    call.thread = static_cast<std::uint32_t>(trace.threads.size());
    call.start = call.end = draft.begin;
    if (last && last->end <= draft.ran(orphan, recorded.start)) {
      call.thread = last->thread;
      call.start = call.end = last->end;
    }
    add_ops(draft, call, std::span(&orphan, 1), late.ops);
    last = {call.thread, call.end};
    late.calls.push_back(call);
  }
  draft.counters.add(kOrphanOps, found.size());
  draft.ops_without_launch += found.size();
}

// The host's lead over the device stays what it was: where a pass takes longer than its host, the
// marked thread waits at its end for the work that had been done by then. Of a host that was not
// recorded nothing is known but that it launched the work: it waits from the beginning on.
void close_pass(Draft& draft, Calls& late) {
  const TraceTime end = draft.begin + draft.pass->length;
  const bool unknown_host = draft.calls.empty() && draft.iteration_starts.size() == 1;
  if (end <= draft.iterations_end && !unknown_host) return;
  DraftCall wait;
  wait.start = unknown_host ? draft.begin : draft.iterations_end;
  wait.end = end;
  wait.thread = draft.marked_thread;
  wait.closes_pass = true;
  late.calls.push_back(wait);
  draft.iterations_end = end;
}

bool is_mark(const DraftCall& call) {
  return call.kind == program::StepKind::kIteration || call.kind == program::StepKind::kEnd;
}

// The marked thread passes each iteration's begin, and the end of the last one.
void collect_marks(const Draft& draft, Calls& late) {
  std::uint32_t number = 0;
  const auto add = [&](TraceTime at, program::StepKind kind) {
    DraftCall mark;
    mark.start = mark.end = at;
    mark.thread = draft.marked_thread;
    mark.kind = kind;
    mark.target = number++;
    late.calls.push_back(mark);
  };
  for (const TraceTime start : draft.iteration_starts) add(start, program::StepKind::kIteration);
  add(draft.iterations_end, program::StepKind::kEnd);
}

// At one instant, marks come first, then recorded calls, then inferred ones.
bool comes_after(const DraftCall& late, const DraftCall& recorded) {
  return late.start > recorded.start || (late.start == recorded.start && !is_mark(late));
}

// At one instant, an iteration begins before its calls, and ends after its closing call has
// returned.
int place_in_instant(const DraftCall& call) {
  if (call.closes_pass) return 2;
  if (!is_mark(call)) return 1;
  return call.kind == program::StepKind::kEnd ? 3 : 0;
}

bool precedes(const DraftCall& a, const DraftCall& b) {
  if (a.start != b.start) return a.start < b.start;
  return place_in_instant(a) < place_in_instant(b);
}

// Calls are sorted mostly, but for the marks behind them.
void sort_late(std::vector<DraftCall>& calls) {
  const auto marks = std::ranges::find_if(calls, is_mark);
  if (!std::is_sorted(calls.begin(), marks, precedes)) {
    std::stable_sort(calls.begin(), marks, precedes);
  }
  std::inplace_merge(calls.begin(), marks, calls.end(), precedes);
}

// From the back, so that both lists of the draft are merged in place.
void merge_calls(Draft& draft, Calls& late) {
  sort_late(late.calls);
  std::size_t calls_left = draft.calls.size();
  std::size_t ops_left = draft.ops.size();
  draft.calls.resize(calls_left + late.calls.size());
  draft.ops.resize(ops_left + late.ops.size());
  std::size_t op_place = draft.ops.size();
  std::size_t late_left = late.calls.size();
  for (std::size_t place = draft.calls.size(); late_left > 0; --place) {
    const bool is_late =
        calls_left == 0 || comes_after(late.calls[late_left - 1], draft.calls[calls_left - 1]);
    DraftCall call = is_late ? late.calls[--late_left] : draft.calls[--calls_left];
    for (std::uint32_t i = call.op_count; i-- > 0;) {
      DraftOp& op = draft.ops[--op_place];
      op = is_late ? late.ops[call.target + i] : draft.ops[--ops_left];
    }
    if (call.op_count > 0) call.target = static_cast<std::uint32_t>(op_place);
    draft.calls[place - 1] = call;
  }
}

void link_ops_to_calls(Draft& draft) {
  for (std::uint32_t i = 0; i < draft.calls.size(); ++i) {
    const DraftCall& call = draft.calls[i];
    for (std::uint32_t op = 0; op < call.op_count; ++op) draft.ops[call.target + op].call = i;
  }
}

void index_streams_and_threads(Draft& draft) {
  draft.stream_ops.resize(draft.trace->streams.size());
  for (std::uint32_t i = 0; i < draft.ops.size(); ++i) {
    draft.stream_ops[draft.stream_of(draft.ops[i])].push_back(i);
  }
  for (auto& ops : draft.stream_ops) {
    traces::sort_stably(ops, [&](std::uint32_t a, std::uint32_t b) {
      return draft.ops[a].start < draft.ops[b].start;
    });
  }
  draft.thread_calls.resize(draft.trace->threads.size() + 1);
  for (std::uint32_t i = 0; i < draft.calls.size(); ++i) {
    draft.thread_calls[draft.calls[i].thread].push_back(i);
  }
}

}  // namespace

// Allocations in stream order wait for nothing.
bool may_wait(const traces::RankTrace& trace, const traces::HostCall& call) {
  const HostCallKind kind = call.kind;
  if (kind == HostCallKind::kAlloc || kind == HostCallKind::kFree) {
    return trace.names[call.name].find("Async") == std::string_view::npos;
  }
  return is_synchronisation(kind);
}

std::vector<std::uint32_t> place_of_each(const Draft& draft) {
  std::vector<std::uint32_t> places(draft.trace->device_ops.size(), program::kNoIndex);
  for (std::uint32_t i = 0; i < draft.ops.size(); ++i) places[draft.ops[i].recorded] = i;
  return places;
}

Draft collect(const traces::RankTrace& trace, const traces::RankPass* pass, Window window,
              HostShare share) {
  Draft draft;
  draft.trace = &trace;
  draft.pass = pass;
  draft.share = share;
  set_window(draft);
  collect_calls(draft);
  link_ops_to_calls(draft);
  Calls late;
  collect_polls(draft, late);
  collect_orphans(draft, late);
  if (window == Window::kIterations) close_pass(draft, late);
  collect_marks(draft, late);
  merge_calls(draft, late);
  link_ops_to_calls(draft);
  index_streams_and_threads(draft);
  return draft;
}

void trim_overlaps(Draft& draft) {
  for (std::uint32_t stream = 0; stream < draft.stream_ops.size(); ++stream) {
    const auto& ops = draft.stream_ops[stream];
    draft.first_held_by.push_back(draft.pass_before(stream));
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
