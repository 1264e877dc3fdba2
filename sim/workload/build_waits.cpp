// What synchronising calls waited for, and which pauses are hand-overs between host threads.
//
// A call waited for an operation if the operation had been launched before, ended during the
// call, and the call returned after it. The stream of a synchronisation that was recorded
// without one is the stream whose last launched operation ended latest within the call.
#include <algorithm>
#include <optional>

#include "sim/workload/build_counters.hpp"
#include "sim/workload/event_records.hpp"
#include "sim/workload/program_draft.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

constexpr Duration kHandOverPause = std::chrono::microseconds(30);
constexpr Duration kUsualReturn = std::chrono::microseconds(3);
constexpr Duration kUsualCost = std::chrono::microseconds(2);

// Streams' last launched operations before a call, as calls are walked in time order.
struct Progress {
  std::vector<std::uint32_t> last;  // by stream
};

// The call blocked until `end`, then needed the rest to return.
void set_wait(DraftCall& call, StepKind kind, std::uint32_t target, TraceTime end) {
  call.kind = kind;
  call.target = target;
  call.waits = true;
  if (end > call.start) {
    call.return_lag = std::max(Duration{}, call.end - end);
    call.cost = std::min(kUsualCost, call.end - call.start);
  } else {
    call.cost = call.end - call.start;
    call.return_lag = std::min(kUsualReturn, call.cost);
  }
}

bool ended_within(const Draft& draft, std::uint32_t op, const DraftCall& call) {
  return op != kNoIndex && draft.ops[op].end > call.start && draft.ops[op].end <= call.end;
}

// The stream whose last operation ended latest within the call.
std::optional<std::uint32_t> awaited_stream(const Draft& draft, const Progress& progress,
                                            const DraftCall& call) {
  std::optional<std::uint32_t> best;
  for (std::uint32_t stream = 0; stream < progress.last.size(); ++stream) {
    if (!ended_within(draft, progress.last[stream], call)) continue;
    if (!best || draft.ops[progress.last[stream]].end > draft.ops[progress.last[*best]].end) {
      best = stream;
    }
  }
  return best;
}

void resolve_stream_sync(Draft& draft, const Progress& progress, DraftCall& call) {
  std::optional<std::uint32_t> stream;
  if (call.stream != traces::kNone && call.stream < progress.last.size()) {
    stream = call.stream;
  } else {
    stream = awaited_stream(draft, progress, call);
    if (stream) draft.counters.add(kInferredWaits);
  }
  if (!stream || progress.last[*stream] == kNoIndex) return;
  const TraceTime end = draft.ops[progress.last[*stream]].end;
  if (end > call.end) return;  // it cannot have waited for this
  set_wait(call, StepKind::kWaitStream, *stream, end);
}

// Everything launched so far has ended when the call returns, and some of it during the call.
void resolve_device_sync(Draft& draft, const Progress& progress, DraftCall& call) {
  TraceTime latest = TraceTime::min();
  for (const std::uint32_t op : progress.last) {
    if (op != kNoIndex) latest = std::max(latest, draft.ops[op].end);
  }
  if (latest > call.end || latest == TraceTime::min()) return;
  if (call.recorded_kind == HostCallKind::kFree && latest <= call.start) return;
  set_wait(call, StepKind::kWaitDevice, 0, latest);
}

// The operation that the event stands for, where both calls name it.
bool resolve_named_event(const Draft& draft, const EventRecords& events, DraftCall& call) {
  if (!events.knows(call.event, call.start)) return false;
  const std::uint32_t op = events.awaited(call.event, call.start);
  if (op != kNoIndex && draft.ops[op].end <= call.end) {
    set_wait(call, StepKind::kWaitOp, op, draft.ops[op].end);
  }
  return true;
}

// The operation, of any stream, that ended last within the call.
void resolve_event_sync(Draft& draft, std::size_t calls_before, DraftCall& call) {
  std::uint32_t best = kNoIndex;
  const std::size_t oldest = calls_before > 4096 ? calls_before - 4096 : 0;
  for (std::size_t i = oldest; i < calls_before; ++i) {
    const DraftCall& launch = draft.calls[i];
    for (std::uint32_t op = launch.first_op; op < launch.first_op + launch.op_count; ++op) {
      if (!ended_within(draft, op, call)) continue;
      if (best == kNoIndex || draft.ops[op].end > draft.ops[best].end) best = op;
    }
  }
  if (best == kNoIndex) return;
  draft.counters.add(kInferredWaits);
  set_wait(call, StepKind::kWaitOp, best, draft.ops[best].end);
}

// A copy call that returns after its copy has ended, and not at once, was a blocking one.
void resolve_launch(Draft& draft, DraftCall& call) {
  call.cost = call.end - call.start - call.held;
  const DraftOp& last = draft.ops[call.first_op + call.op_count - 1];
  if (call.recorded_kind != HostCallKind::kCopy || !ended_within(draft, call.first_op, call)) {
    return;
  }
  if (last.end > call.end) return;
  const std::uint32_t target = call.first_op;
  set_wait(call, StepKind::kLaunchAndWait, target, last.end);
}

}  // namespace

void find_waits(Draft& draft) {
  const EventRecords events(draft);
  Progress progress{std::vector<std::uint32_t>(draft.trace->streams.size(), kNoIndex)};
  for (std::size_t i = 0; i < draft.calls.size(); ++i) {
    DraftCall& call = draft.calls[i];
    call.cost = call.end - call.start;
    switch (call.recorded_kind) {
      case HostCallKind::kStreamSync: resolve_stream_sync(draft, progress, call); break;
      case HostCallKind::kDeviceSync:
      case HostCallKind::kFree: resolve_device_sync(draft, progress, call); break;
      case HostCallKind::kEventSync:
        if (!resolve_named_event(draft, events, call)) resolve_event_sync(draft, i, call);
        break;
      default: break;
    }
    if (call.op_count == 0) continue;
    resolve_launch(draft, call);
    for (std::uint32_t op = call.first_op; op < call.first_op + call.op_count; ++op) {
      progress.last[draft.ops[op].recorded->stream.index()] = op;
    }
  }
}

void find_hand_overs(Draft& draft) {
  std::vector<std::uint32_t> by_end(draft.calls.size());
  for (std::uint32_t i = 0; i < by_end.size(); ++i) by_end[i] = i;
  std::stable_sort(by_end.begin(), by_end.end(), [&](std::uint32_t a, std::uint32_t b) {
    return draft.calls[a].end < draft.calls[b].end;
  });
  for (std::size_t thread = 0; thread < draft.trace->threads.size(); ++thread) {
    TraceTime previous_end = draft.begin;
    for (const std::uint32_t index : draft.thread_calls[thread]) {
      DraftCall& call = draft.calls[index];
      const TraceTime pause_begin = previous_end;
      previous_end = call.end;
      if (call.start - pause_begin < kHandOverPause) continue;
      auto place = std::upper_bound(
          by_end.begin(), by_end.end(), call.start,
          [&](TraceTime at, std::uint32_t i) { return at < draft.calls[i].end; });
      while (place != by_end.begin()) {
        const DraftCall& other = draft.calls[*--place];
        if (other.end <= pause_begin) break;
        if (other.thread == call.thread || other.thread == draft.trace->threads.size()) continue;
        call.after = *place;
        draft.counters.add(kInferredHandOvers);
        break;
      }
    }
  }
}

// A thread that nobody hands over to begins each pass after the marked thread has begun it.
void tie_free_threads(Draft& draft) {
  std::uint32_t mark = 0;
  while (draft.calls[mark].kind != StepKind::kIteration) ++mark;
  for (std::size_t thread = 0; thread < draft.thread_calls.size(); ++thread) {
    const auto& calls = draft.thread_calls[thread];
    if (calls.empty() || thread == draft.marked_thread) continue;
    DraftCall& first = draft.calls[calls.front()];
    if (first.after == kNoIndex && first.start >= draft.calls[mark].start) first.after = mark;
  }
}

}  // namespace bubblesim::workload
