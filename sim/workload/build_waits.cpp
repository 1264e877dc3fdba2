// What synchronising calls waited for, and which pauses are hand-overs between host threads.
//
// A call waited for an operation if the operation had been launched before, ended during the
// call, and the call returned after it. The stream of a synchronisation that was recorded
// without one is the stream whose last launched operation ended latest within the call.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/workload/build_counters.hpp"
#include "sim/workload/program_draft.hpp"
#include "sim/workload/stream_order.hpp"
#include "traces/names/host_call_names.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

constexpr Duration kHandOverPause = std::chrono::microseconds(30);
constexpr std::int64_t kByChance = 4;
constexpr Duration kUsualReturn = std::chrono::microseconds(3);
constexpr Duration kUsualCost = std::chrono::microseconds(2);
constexpr Duration kStaging = std::chrono::microseconds(50);
constexpr Duration kLastStaged = std::chrono::microseconds(500);

// By stream, its last launched operation before a call, as calls are walked in time order.
using Progress = std::vector<std::uint32_t>;

// The call blocked until `end`, then needed the rest to return.
void set_wait(Draft& draft, DraftCall& call, program::StepKind kind, std::uint32_t target,
              TraceTime end) {
  call.kind = kind;
  call.target = target;
  DraftWait& wait = draft.wait_of(call);
  wait.returns = true;
  wait.until = end;
  if (end > call.start) {
    wait.return_lag = std::max(Duration{}, call.end - end);
    call.cost = std::min(kUsualCost, call.end - call.start);
  } else {
    call.cost = call.end - call.start;
    wait.return_lag = std::min(kUsualReturn, call.cost);
  }
}

// The call waited for all of `awaited`, as it would for each in turn: it returns a lag after the
// last of their ends, recorded or changed; where two ends are nearer than the lag, the first one's
// lag is their distance.
void set_waits(Draft& draft, DraftCall& call, StreamOrder::Befores awaited) {
  std::ranges::stable_sort(awaited, {}, [&](Before before) { return draft.end_of(before); });
  const Before last = awaited.back();
  set_wait(draft, call, program::StepKind::kWaitOp, last.op, draft.end_of(last));
  DraftWait& wait = draft.wait_of(call);
  wait.passes_back = last.passes_back;
  for (std::size_t i = awaited.size() - 1; i-- > 0;) {
    const Duration apart = draft.end_of(awaited[i + 1]) - draft.end_of(awaited[i]);
    const Duration lag = std::clamp(apart - Duration{1}, Duration{}, wait.return_lag);
    draft.edges.push_back({awaited[i].op, wait.first_also, lag, awaited[i].passes_back});
    wait.first_also = static_cast<std::uint32_t>(draft.edges.size() - 1);
  }
}

bool ended_within(const Draft& draft, std::uint32_t op, const DraftCall& call) {
  return op != program::kNoIndex && draft.ops[op].end > call.start && draft.ops[op].end <= call.end;
}

// When everything on the stream that was launched before the call had ended; of a pass that
// repeats, the pass before counts where this one has launched nothing there yet.
std::optional<TraceTime> stream_end(const Draft& draft, const Progress& progress,
                                    std::uint32_t stream) {
  const std::uint32_t op = progress[stream];
  return op == program::kNoIndex ? draft.pass_before(stream) : draft.ops[op].end;
}

// The stream whose last operation ended latest within the call.
std::optional<std::uint32_t> awaited_stream(const Draft& draft, const Progress& progress,
                                            const DraftCall& call) {
  std::optional<std::uint32_t> best;
  TraceTime latest{};
  for (std::uint32_t stream = 0; stream < progress.size(); ++stream) {
    const auto end = stream_end(draft, progress, stream);
    if (!end || *end <= call.start || *end > call.end) continue;
    if (!best || *end > latest) {
      best = stream;
      latest = *end;
    }
  }
  return best;
}

// Whether the call returned before what it waited for had ended, though all of both is in the
// window. Of the pass before only the usual end is known.
bool contradicts(const Draft& draft, const DraftCall& call, std::uint32_t op) {
  if (op == program::kNoIndex || draft.ops[op].end <= call.end) return false;
  return call.end == draft.called(draft.trace->host_calls[call.recorded].end());
}

// The call waited for those of `awaited` that had ended when it returned.
void resolve_operations(Draft& draft, StreamOrder::Befores awaited, DraftCall& call) {
  const bool contradicted = std::ranges::any_of(awaited, [&](Before before) {
    return before.passes_back == 0 && contradicts(draft, call, before.op);
  });
  if (contradicted) draft.counters.add(kWaitsBeforeEnd);
  std::erase_if(awaited, [&](Before before) { return draft.end_of(before) > call.end; });
  if (!awaited.empty()) set_waits(draft, call, std::move(awaited));
}

// Where the stream itself waits for operations of other streams, the call waits for these, too.
void resolve_stream_sync(Draft& draft, const Progress& progress, const StreamOrder& order,
                         DraftCall& call) {
  std::optional<std::uint32_t> stream;
  if (draft.named_stream(call) < progress.size()) {
    stream = draft.named_stream(call);
    StreamOrder::Befores awaited = order.awaited_on(*stream);
    if (awaited.empty() && draft.stream_ops[*stream].empty()) draft.counters.add(kWaitsForNothing);
    const bool alone = std::ranges::all_of(awaited, [&](Before before) {
      return draft.stream_of(draft.ops[before.op]) == *stream;
    });
    if (!alone) return resolve_operations(draft, std::move(awaited), call);
    if (contradicts(draft, call, progress[*stream])) draft.counters.add(kWaitsBeforeEnd);
  } else {
    stream = awaited_stream(draft, progress, call);
    if (!stream) return;
    draft.counters.add(kInferredWaits);
    draft.wait_of(call).inferred = true;
  }
  const auto end = stream_end(draft, progress, *stream);
  if (!end || *end > call.end) return;  // it cannot have waited for this
  set_wait(draft, call, program::StepKind::kWaitStream, *stream, *end);
}

// What a call does itself after what it waited for is host time, which stays where the call finds
// nothing to wait for. Times in its wait are for noticing the end only.
void keep_own_work(Draft& draft, DraftCall& call) {
  DraftWait& wait = draft.wait_of(call);
  wait.return_lag = std::min(wait.return_lag, kUsualReturn);
  call.end = std::min(call.end, wait.until + wait.return_lag);
}

// Everything launched so far has ended when the call returns, and some of it during the call.
void resolve_device_sync(Draft& draft, const Progress& progress, DraftCall& call) {
  TraceTime latest = TraceTime::min();
  bool contradicted = false;
  for (std::uint32_t stream = 0; stream < progress.size(); ++stream) {
    latest = std::max(latest, stream_end(draft, progress, stream).value_or(latest));
    contradicted = contradicted || contradicts(draft, call, progress[stream]);
  }
  if (contradicted && call.recorded_kind == HostCallKind::kDeviceSync) {
    draft.counters.add(kWaitsBeforeEnd);
  }
  if (latest > call.end || latest == TraceTime::min()) return;
  if (call.recorded_kind != HostCallKind::kDeviceSync && latest <= call.start) return;
  set_wait(draft, call, program::StepKind::kWaitDevice, 0, latest);
  if (call.recorded_kind != HostCallKind::kDeviceSync) keep_own_work(draft, call);
}

// What the event stands for, where both calls name it.
bool resolve_named_event(Draft& draft, const StreamOrder& order, DraftCall& call) {
  const StreamOrder::Befores* awaited = order.awaited_for(draft.named_event(call));
  if (awaited != nullptr) resolve_operations(draft, *awaited, call);
  return awaited != nullptr;
}

// The operation, of any stream, that ended last within the call.
void resolve_event_sync(Draft& draft, std::size_t calls_before, DraftCall& call) {
  std::uint32_t best = program::kNoIndex;
  const std::size_t oldest = calls_before > 4096 ? calls_before - 4096 : 0;
  for (std::size_t i = oldest; i < calls_before; ++i) {
    const DraftCall& launch = draft.calls[i];
    for (std::uint32_t op = launch.target; op < launch.target + launch.op_count; ++op) {
      if (!ended_within(draft, op, call)) continue;
      if (best == program::kNoIndex || draft.ops[op].end > draft.ops[best].end) best = op;
    }
  }
  if (best == program::kNoIndex) return;
  draft.counters.add(kInferredWaits);
  draft.wait_of(call).inferred = true;
  set_wait(draft, call, program::StepKind::kWaitOp, best, draft.ops[best].end);
}

// The launch follows the end of what made room; where that is not in the window, or not known, the
// queue of the run holds the launch (program::kLaunchQueueDepth).
void resolve_queue_wait(Draft& draft, const std::vector<std::uint32_t>& places, DraftCall& call) {
  if (call.wait == program::kNoIndex) return;
  DraftWait& wait = draft.waits[call.wait];
  if (wait.queue.inferred) draft.counters.add(kInferredQueueWaits);
  call.cost -= wait.queue.held;
  if (wait.queue.op == traces::kNone) return;
  const std::uint32_t op = places[wait.queue.op];
  if (op == program::kNoIndex || draft.ops[op].end > call.end) return;
  wait.queue_op = op;
  call.cost = std::min(call.cost, call.end - draft.ops[op].end);
  wait.queue_lag = call.end - draft.ops[op].end - call.cost;
}

// A copy of pageable memory is staged through the driver's own: the call returns with its last part
// on its way, shortly before the copy ends (measured: 16 to 230 us). Asynchronous ones return at
// once.
bool waited_while_staging(const DraftOp& copy, const DraftCall& call) {
  return copy.start > call.start && call.end - copy.start >= kStaging &&
         copy.end <= call.end + kLastStaged && copy.end - call.end <= call.end - copy.start;
}

traces::CopyReturn return_of(const Draft& draft, const DraftCall& call, const DraftOp& copy) {
  const traces::DeviceOp& op = draft.recorded(copy);
  if (call.recorded == traces::kNone) return traces::CopyReturn::kUnknown;
  const auto& names = draft.trace->names;
  return traces::copy_return(names[draft.trace->host_calls[call.recorded].name], names[op.name],
                             op.direction);
}

// A copy call that returns after its copy has ended, and not at once, was a blocking one, unless
// what is copied how says otherwise.
void resolve_launch(Draft& draft, DraftCall& call) {
  if (call.recorded_kind != HostCallKind::kCopy) return;
  const DraftOp& last = draft.ops[call.target + call.op_count - 1];
  const traces::CopyReturn returns = return_of(draft, call, last);
  if (returns == traces::CopyReturn::kAtOnce) return;
  const bool ended = ended_within(draft, call.target, call) && last.end <= call.end;
  const bool blocked =
      (returns == traces::CopyReturn::kAfterEnd && last.end <= call.end + kLastStaged) ||
      (returns == traces::CopyReturn::kNearEnd && last.end <= call.end + traces::kClockError);
  if (!ended && !blocked && !waited_while_staging(last, call)) return;
  call.end = std::max(call.end, last.end);
  draft.wait_of(call).queue_op = program::kNoIndex;
  set_wait(draft, call, program::StepKind::kLaunchAndWait, call.target, last.end);
}

// What had ended last when the pass was over, of this pass or of those before.
void resolve_close(Draft& draft, DraftCall& call) {
  const Duration length = draft.pass->length;
  TraceTime latest = TraceTime::min();
  std::uint32_t best = program::kNoIndex;
  std::int64_t passes_back = 0;
  for (std::uint32_t op = 0; op < draft.ops.size(); ++op) {
    const Duration late = std::max(Duration{}, draft.ops[op].end - call.end);
    const std::int64_t back = (late + length - Duration{1}) / length;
    const TraceTime end = draft.ops[op].end - back * length;
    if (end <= latest) continue;
    latest = end;
    best = op;
    passes_back = back;
  }
  set_wait(draft, call, program::StepKind::kWaitOp, best, latest);
  draft.wait_of(call).passes_back = static_cast<std::uint32_t>(passes_back);
}

/// The calls of all recorded threads in order of their ends.
class CallsByEnd {
 public:
  explicit CallsByEnd(const Draft& draft) : draft_(draft) {
    for (std::size_t thread = 0; thread + 1 < draft.thread_calls.size(); ++thread) {
      const auto& calls = draft.thread_calls[thread];  // those of no recorded thread come last
      calls_.insert(calls_.end(), calls.begin(), calls.end());
    }
    std::ranges::sort(calls_, [&](std::uint32_t a, std::uint32_t b) {
      return draft.calls[a].end != draft.calls[b].end ? draft.calls[a].end < draft.calls[b].end
                                                      : a < b;
    });
  }

  /// The call of another thread that ended last in (after, until]; of equals the last.
  [[nodiscard]] std::uint32_t last_of_others(std::size_t thread, TraceTime after,
                                             TraceTime until) const {
    auto past = std::ranges::upper_bound(calls_, until, {}, [&](std::uint32_t i) {
      return draft_.calls[i].end;
    });
    while (past != calls_.begin() && draft_.calls[*std::prev(past)].end > after) {
      --past;
      if (draft_.calls[*past].thread != thread) return *past;
    }
    return program::kNoIndex;
  }

 private:
  const Draft& draft_;
  std::vector<std::uint32_t> calls_;
};

/// A pause of a thread in which another thread's call ended last; calls are into Draft::calls.
struct HandOver {
  std::uint32_t call = 0;   ///< ends the pause
  std::uint32_t after = 0;  ///< the other thread's
  bool near = false;        ///< by chance one of kByChance is
};

// The pause of an unrelated thread may end anywhere between the ends of two calls; a thread that
// got a hand-over goes on soon after the first call, while the other thread does not.
bool is_near(const Draft& draft, std::uint32_t call, std::uint32_t after) {
  const auto& calls = draft.thread_calls[draft.calls[after].thread];
  const auto ends_later = [&](std::uint32_t i) {
    return draft.calls[i].recorded != traces::kNone &&  // marks take no time of the thread's
           draft.calls[i].end > draft.calls[after].end;
  };
  const auto first = std::ranges::lower_bound(calls, after);  // calls are numbered by start
  const auto next = std::find_if(first, calls.end(), ends_later);
  if (next == calls.end()) return true;
  const TraceTime end = draft.calls[after].end;
  return kByChance * (draft.calls[call].start - end) <= draft.calls[*next].end - end;
}

std::vector<HandOver> possible_hand_overs(const Draft& draft) {
  std::vector<HandOver> found;
  const CallsByEnd ends(draft);
  for (std::size_t thread = 0; thread < draft.trace->threads.size(); ++thread) {
    TraceTime previous_end = draft.begin;
    for (const std::uint32_t index : draft.thread_calls[thread]) {
      const DraftCall& call = draft.calls[index];
      const TraceTime pause_begin = std::exchange(previous_end, call.end);
      if (call.start - pause_begin < kHandOverPause || draft.has_peer(call)) continue;
      const std::uint32_t other = ends.last_of_others(thread, pause_begin, call.start);
      if (other == program::kNoIndex) continue;
      found.push_back({index, other, is_near(draft, index, other)});
    }
  }
  return found;
}

/// Which threads hand over to which: those whose pauses are near in four of five iterations, but
/// for one that the window may cut, and two times of three (threads apart: one time of four).
class RecurringHandOvers {
 public:
  RecurringHandOvers(const Draft& draft, const std::vector<HandOver>& found) : draft_(draft) {
    for (const HandOver& hand_over : found) {
      Seen& seen = seen_[key(hand_over)];
      ++seen.pauses;
      if (!hand_over.near) continue;
      ++seen.near;
      seen.iterations.insert(iteration_of(hand_over));
    }
  }

  [[nodiscard]] bool has(const HandOver& hand_over) const {
    const Seen& seen = seen_.at(key(hand_over));
    return 3 * seen.near >= 2 * seen.pauses &&
           5 * (seen.iterations.size() + 1) >= 4 * draft_.iteration_starts.size();
  }

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;  ///< of both calls, the thread
  struct Seen {
    std::size_t pauses = 0;
    std::size_t near = 0;
    std::set<std::ptrdiff_t> iterations;
  };
  [[nodiscard]] Key key(const HandOver& hand_over) const {
    return {draft_.calls[hand_over.call].thread, draft_.calls[hand_over.after].thread};
  }
  [[nodiscard]] std::ptrdiff_t iteration_of(const HandOver& hand_over) const {
    const auto& starts = draft_.iteration_starts;
    return std::ranges::upper_bound(starts, draft_.calls[hand_over.call].start) - starts.begin();
  }

  const Draft& draft_;
  std::map<Key, Seen> seen_;
};

}  // namespace

void find_waits(Draft& draft) {
  StreamOrder order(draft);
  const bool queued = !draft.waits.empty();  // so far, only launch queues made calls wait
  const std::vector<std::uint32_t> places =
      queued ? place_of_each(draft) : std::vector<std::uint32_t>{};
  Progress progress(draft.trace->streams.size(), program::kNoIndex);
  for (std::size_t i = 0; i < draft.calls.size(); ++i) {
    DraftCall& call = draft.calls[i];
    call.cost = call.end - call.start;
    order.reach(call.start);
    switch (call.recorded_kind) {
      case HostCallKind::kStreamSync: resolve_stream_sync(draft, progress, order, call); break;
      case HostCallKind::kDeviceSync:
      case HostCallKind::kAlloc:
      case HostCallKind::kFree: resolve_device_sync(draft, progress, call); break;
      case HostCallKind::kEventSync:
        if (!resolve_named_event(draft, order, call)) resolve_event_sync(draft, i, call);
        break;
      default: break;
    }
    if (call.closes_pass) resolve_close(draft, call);
    if (call.op_count == 0) continue;
    resolve_queue_wait(draft, places, call);
    resolve_launch(draft, call);
    for (std::uint32_t op = call.target; op < call.target + call.op_count; ++op) {
      progress[draft.stream_of(draft.ops[op])] = op;
      order.launch(op);
    }
  }
}

void find_peer_calls(Draft& draft) {
  if (draft.share.hosts == nullptr) return;
  for (std::uint32_t thread = 0; thread < draft.trace->threads.size(); ++thread) {
    TraceTime previous = TraceTime::min();
    for (const std::uint32_t index : draft.thread_calls[thread]) {
      DraftCall& call = draft.calls[index];
      if (call.recorded == traces::kNone) continue;
      const TraceTime start = draft.trace->host_calls[call.recorded].start;
      auto peer = draft.share.hosts->last_before(draft.share.rank, thread, previous, start);
      if (!peer && draft.pass != nullptr && previous == TraceTime::min()) {
        peer = draft.share.hosts->last_of_pass(draft.share.rank, thread);
      }
      if (peer) draft.wait_of(call).peer = *peer;
      previous = start;
    }
  }
}

void find_hand_overs(Draft& draft) {
  if (draft.trace->threads.size() < 2) return;
  const std::vector<HandOver> found = possible_hand_overs(draft);
  const RecurringHandOvers recurring(draft, found);
  for (const HandOver& hand_over : found) {
    if (!hand_over.near || !recurring.has(hand_over)) continue;
    draft.wait_of(draft.calls[hand_over.call]).after = hand_over.after;
    draft.counters.add(kInferredHandOvers);
  }
}

// A thread that gets no hand-over begins each pass after the marked thread has begun it.
void tie_free_threads(Draft& draft) {
  std::uint32_t mark = 0;
  while (draft.calls[mark].kind != program::StepKind::kIteration) ++mark;
  for (std::size_t thread = 0; thread < draft.thread_calls.size(); ++thread) {
    const auto& calls = draft.thread_calls[thread];
    if (calls.empty() || thread == draft.marked_thread) continue;
    DraftCall& first = draft.calls[calls.front()];
    if (std::as_const(draft).wait_of(first).after == program::kNoIndex &&
        !draft.has_peer(first) && first.start >= draft.calls[mark].start) {
      draft.wait_of(first).after = mark;
    }
  }
}

}  // namespace bubblesim::workload
