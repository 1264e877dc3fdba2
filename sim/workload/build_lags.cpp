// Splits the time between an operation's start and what held it into lags.
//
// Each dependency (launch, stream predecessor, edges) gets its usual lag: the median over the
// rank of the cases in which only that dependency can have held the operation. The dependency
// that was satisfied last gets whatever remains, so that replay meets the recorded start.
// Lags over 20 us, beyond the launching call's own time, are not what hardware takes: the operation
// waited for something that is not recorded. No median counts them. Where an operation of another
// stream ended in the 20 us before the start, the operation waited for that one if one of the two
// is from a CUDA graph (its branches are recorded on streams of their own, or on those that it was
// captured on), or if the same happens in four of five iterations. What remains is unexplained.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/base/nearest_rank.hpp"
#include "sim/program/rules.hpp"
#include "sim/workload/build_counters.hpp"
#include "sim/workload/program_draft.hpp"

namespace bubblesim::workload {
namespace {

/// The rank's usual lags.
struct UsualLags {
  Duration launch{};
  Duration gap{};
};

// Until when the launching call explains that the operation has not started.
TraceTime returned(const Draft& draft, const DraftOp& op) {
  return std::min(draft.calls[op.call].end, op.start);
}

UsualLags measure(const Draft& draft) {
  std::vector<Duration> launches;
  std::vector<Duration> gaps;
  for (const DraftOp& op : draft.ops) {
    const TraceTime called = draft.calls[op.call].start;
    if (op.start < called || op.first_edge != program::kNoIndex) continue;
    const std::optional<TraceTime> before = follows(draft, op);
    const TraceTime held = std::max(before.value_or(called), returned(draft, op));
    if (op.start - held > program::kLongestLag) continue;
    if (!before || *before <= called) {
      launches.push_back(op.start - called);
    } else if (*before <= op.start && op.start - *before <= program::kLongestLag) {
      gaps.push_back(op.start - *before);
    }
  }
  return {upper_median(std::move(launches)), upper_median(std::move(gaps))};
}

bool in_graph(const Draft& draft, std::uint32_t op) {
  const DraftCall& call = draft.calls[draft.ops[op].call];
  return call.recorded_kind == traces::HostCallKind::kLaunchGraph || call.op_count > 1;
}

/// Operations by their ends.
class Ends {
 public:
  explicit Ends(const Draft& draft) : draft_(draft), by_end_(draft.ops.size()) {
    for (std::uint32_t i = 0; i < by_end_.size(); ++i) by_end_[i] = i;
    std::ranges::stable_sort(by_end_, {}, [&](std::uint32_t i) { return draft.ops[i].end; });
  }
  /// What ended last in the kLongestLag before `op` starts, launched earlier, on another stream.
  [[nodiscard]] std::uint32_t just_before(std::uint32_t op) const {
    const DraftOp& waits = draft_.ops[op];
    auto place = std::ranges::upper_bound(by_end_, waits.start, {}, [&](std::uint32_t i) {
      return draft_.ops[i].end;
    });
    while (place != by_end_.begin()) {
      const std::uint32_t before = *--place;
      if (waits.start - draft_.ops[before].end > program::kLongestLag) break;
      const bool other = draft_.stream_of(draft_.ops[before]) != draft_.stream_of(waits);
      if (before < op && other) return before;
    }
    return program::kNoIndex;
  }

 private:
  const Draft& draft_;
  std::vector<std::uint32_t> by_end_;
};

/// An operation that started long after all that is known to hold it.
struct Delay {
  std::uint32_t op = program::kNoIndex;
  std::uint32_t before = program::kNoIndex;  ///< what ended just before; kNoIndex: nothing
  TraceTime since{};
};

/// Which kernels follow which across streams, and in how many iterations.
class Recurring {
 public:
  Recurring(const Draft& draft, const std::vector<Delay>& delays) : draft_(draft) {
    for (const Delay& delay : delays) {
      if (delay.before == program::kNoIndex) continue;
      Seen& seen = seen_[key(delay)];
      const auto iteration = iteration_of(delay.op);
      if (draft.marked && seen.iterations > 0 && seen.last == iteration) continue;
      ++seen.iterations;
      seen.last = iteration;
    }
  }
  /// Where iterations are not known, twice is enough.
  [[nodiscard]] bool has(const Delay& delay) const {
    const std::size_t iterations = draft_.marked ? draft_.iteration_starts.size() : 2;
    return 5 * seen_.at(key(delay)).iterations >= 4 * iterations;
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  struct Seen {
    std::size_t iterations = 0;
    std::ptrdiff_t last = 0;
  };
  [[nodiscard]] Key key(const Delay& delay) const {
    const traces::DeviceOp& op = draft_.recorded(draft_.ops[delay.op]);
    const traces::DeviceOp& before = draft_.recorded(draft_.ops[delay.before]);
    return {op.stream.value, op.name.value, before.stream.value, before.name.value};
  }
  [[nodiscard]] std::ptrdiff_t iteration_of(std::uint32_t op) const {
    const auto& starts = draft_.iteration_starts;
    return std::ranges::upper_bound(starts, draft_.calls[draft_.ops[op].call].start) -
           starts.begin();
  }

  const Draft& draft_;
  std::map<Key, Seen> seen_;
};

/// Gives the operation's dependencies their lags; says since when nothing explains its waiting.
TraceTime assign(Draft& draft, std::uint32_t index, const UsualLags& usual) {
  DraftOp& op = draft.ops[index];
  const TraceTime called = std::min(draft.calls[op.call].start, op.start);
  op.launch_lag = std::min(usual.launch, op.start - called);
  Duration* binding = &op.launch_lag;
  TraceTime latest = called + op.launch_lag;
  const auto consider = [&](TraceTime dependency, Duration& lag) {
    lag = std::min(usual.gap, op.start - dependency);
    if (dependency + lag < latest) return;
    latest = dependency + lag;
    binding = &lag;
  };
  const std::optional<TraceTime> before = follows(draft, op);
  if (before && *before <= op.start) consider(*before, op.gap);
  for (std::uint32_t i = op.first_edge; i != program::kNoIndex; i = draft.edges[i].next) {
    consider(draft.end_of(draft.edges[i]), draft.edges[i].lag);
  }
  *binding += op.start - latest;
  return std::max(latest, returned(draft, op));
}

// Makes dependencies of the delays that something explains; counts the others.
void explain(Draft& draft, const std::vector<Delay>& delays, const UsualLags& usual) {
  const Recurring recurring(draft, delays);
  for (const Delay& delay : delays) {
    DraftOp& op = draft.ops[delay.op];
    const bool waited = delay.before != program::kNoIndex &&
                        (in_graph(draft, delay.op) || in_graph(draft, delay.before) ||
                         recurring.has(delay));
    if (waited) {
      draft.add_edge(op, delay.before, {}).inferred = true;
      assign(draft, delay.op, usual);
      draft.counters.add(kInferredEdges);
    } else {
      draft.unexplained.push_back({delay.op, delay.since});
      draft.counters.add(kUnexplainedDelays);
    }
  }
}

// Trimming may have moved either end of an edge.
void drop_contradicted_edges(Draft& draft, DraftOp& op) {
  std::uint32_t* link = &op.first_edge;
  while (*link != program::kNoIndex) {
    DraftEdge& edge = draft.edges[*link];
    if (draft.end_of(edge) > op.start) {
      *link = edge.next;
    } else {
      link = &edge.next;
    }
  }
}

}  // namespace

std::optional<TraceTime> follows(const Draft& draft, const DraftOp& op) {
  if (op.previous != program::kNoIndex) return draft.ops[op.previous].end;
  return draft.first_held_by[draft.stream_of(op)];
}

void assign_lags(Draft& draft) {
  const UsualLags usual = measure(draft);
  std::optional<Ends> ends;
  std::vector<Delay> delays;
  for (std::uint32_t i = 0; i < draft.ops.size(); ++i) {
    DraftOp& op = draft.ops[i];
    const std::optional<TraceTime> before = follows(draft, op);
    if (before && *before > op.start) {
      draft.counters.add(kPassContradictions);
      draft.overruns = true;
    }
    drop_contradicted_edges(draft, op);
    const TraceTime since = assign(draft, i, usual);
    if (op.start - since <= program::kLongestLag) continue;
    if (!ends) ends.emplace(draft);
    delays.push_back({i, ends->just_before(i), since});
  }
  explain(draft, delays, usual);
}

}  // namespace bubblesim::workload
