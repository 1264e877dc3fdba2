// Counts what held each start and each host wait of a finished draft, and the time that nothing
// explains: the delays of starts that build_lags.cpp found, and what a synchronising call took
// beyond the end of the work that it waited for.
#include <algorithm>
#include <optional>
#include <vector>

#include "sim/workload/build_counters.hpp"
#include "sim/workload/program_draft.hpp"
#include "traces/iterations/intervals.hpp"

namespace bubblesim::workload {
namespace {

using traces::HeldBy;
using traces::HostCallKind;
using traces::HostWait;
using traces::Interval;
using traces::WaitFor;

/// A thread that sleeps in a synchronisation is woken up to so late (measured, CHANGELOG.md).
constexpr Duration kLateReturn = std::chrono::microseconds(100);

template <class Enum>
constexpr std::size_t at(Enum value) {
  return static_cast<std::size_t>(value);
}

// The dependency that was satisfied last: of several at once the one that assign_lags took.
HeldBy held_by(const Draft& draft, const DraftOp& op) {
  const DraftCall& launch = draft.calls[op.call];
  HeldBy held = launch.recorded == traces::kNone ? HeldBy::kInferred : HeldBy::kLaunch;
  const std::optional<TraceTime> before = follows(draft, op);
  if (before && *before + op.gap == op.start) held = HeldBy::kStream;
  for (std::uint32_t i = op.first_edge; i != program::kNoIndex; i = draft.edges[i].next) {
    const DraftEdge& edge = draft.edges[i];
    if (draft.end_of(edge) + edge.lag != op.start) continue;
    held = edge.inferred ? HeldBy::kInferred : HeldBy::kEdge;
  }
  return held;
}

// Nothing: no call that waits.
std::optional<HostWait> wait_kind(const DraftCall& call, const DraftWait& wait) {
  switch (call.recorded_kind) {
    case HostCallKind::kStreamSync: return HostWait::kStream;
    case HostCallKind::kDeviceSync: return HostWait::kDevice;
    case HostCallKind::kEventSync: return HostWait::kEvent;
    case HostCallKind::kAlloc:
    case HostCallKind::kFree:
      return wait.returns ? std::optional(HostWait::kMemory) : std::nullopt;
    default: break;
  }
  if (wait.returns && !call.closes_pass) return HostWait::kCopy;
  return wait.queue.held > Duration{} ? std::optional(HostWait::kQueue) : std::nullopt;
}

class Explainer {
 public:
  explicit Explainer(Draft& draft) : draft_(draft) {}

  traces::Explanation run() {
    found_.window = draft_.pass == nullptr ? draft_.end - draft_.begin : draft_.pass->length;
    for (const DraftOp& op : draft_.ops) ++found_.starts[at(held_by(draft_, op))];
    for (const DraftDelay& delay : draft_.unexplained) add_delay(delay);
    found_.late_starts = total_length(traces::unite(all_));
    for (const DraftCall& call : draft_.calls) add_call(call);
    for (std::size_t i = 0; i < waits_.size(); ++i) {
      found_.open_waits[i] = total_length(traces::unite(waits_[i]));
      all_.insert(all_.end(), waits_[i].begin(), waits_[i].end());
    }
    found_.unexplained = total_length(traces::unite(std::move(all_)));
    return found_;
  }

 private:
  void add_delay(const DraftDelay& delay) {
    const DraftOp& op = draft_.ops[delay.op];
    --found_.starts[at(held_by(draft_, op))];
    ++found_.starts[at(HeldBy::kUnknown)];
    all_.push_back({delay.since, op.start});
  }

  void add_call(const DraftCall& call) {
    const DraftWait& wait = std::as_const(draft_).wait_of(call);
    if (wait.after != program::kNoIndex && call.recorded != traces::kNone) {
      ++found_.waits[at(HostWait::kThread)][at(WaitFor::kInferred)];
    }
    if (const auto kind = wait_kind(call, wait)) {
      ++found_.waits[at(*kind)][at(reason(*kind, call, wait))];
    }
  }

  // Allocations and copies take time of the host's own: only synchronisations are judged by it.
  WaitFor reason(HostWait kind, const DraftCall& call, const DraftWait& wait) {
    const bool inferred = wait.inferred || wait.queue.inferred;
    const WaitFor work = inferred ? WaitFor::kInferred : WaitFor::kNamed;
    const bool waited = kind == HostWait::kQueue || (wait.returns && wait.until > call.start);
    if (at(kind) > at(HostWait::kEvent)) return waited ? work : WaitFor::kNothing;
    const TraceTime since = waited ? wait.until : call.start;
    const bool open = call.end - since > kLateReturn;
    if (open) waits_[at(kind)].push_back({since, call.end});
    if (waited) return work;
    return open ? WaitFor::kUnknown : WaitFor::kNothing;
  }

  Draft& draft_;
  traces::Explanation found_;
  std::vector<Interval> all_;
  std::array<std::vector<Interval>, traces::kHostWaitCount> waits_;
};

}  // namespace

void explain_times(Draft& draft) {
  draft.explained = Explainer(draft).run();
  const double share = draft.explained.share();
  if (share > traces::kTellingShare) draft.counters.add(kTimeUnexplained);
  if (share > traces::kDoubtfulShare) draft.counters.add(kDoubtful);
}

}  // namespace bubblesim::workload
