// Splits the time between an operation's start and what held it into lags.
//
// Each dependency (launch, stream predecessor, edges) gets its usual lag: the median over the
// rank of the cases in which only that dependency can have held the operation. The dependency
// that was satisfied last gets whatever remains, so that replay meets the recorded start.
// Where over 20 us remain and an operation of another stream ended in the 20 us before the start,
// one of the two from a CUDA graph, the operation waited for that one, though nothing recorded
// says so: the branches of a graph are recorded on streams of their own, or on those that it was
// captured on.
#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/nearest_rank.hpp"
#include "sim/workload/build_counters.hpp"
#include "sim/workload/program_draft.hpp"

namespace bubblesim::workload {
namespace {

constexpr Duration kUnexplained = std::chrono::microseconds(20);

/// The rank's usual lags.
struct UsualLags {
  Duration launch{};
  Duration gap{};
};

// When what the operation follows on its stream ended: nothing if it is the first that ever runs.
std::optional<TraceTime> follows(const Draft& draft, const DraftOp& op) {
  if (op.previous != program::kNoIndex) return draft.ops[op.previous].end;
  return draft.first_held_by[draft.stream_of(op)];
}

UsualLags measure(const Draft& draft) {
  std::vector<Duration> launches;
  std::vector<Duration> gaps;
  for (const DraftOp& op : draft.ops) {
    const TraceTime called = draft.calls[op.call].start;
    if (op.start < called || op.first_edge != program::kNoIndex) continue;
    const std::optional<TraceTime> before = follows(draft, op);
    if (!before || *before <= called) {
      launches.push_back(op.start - called);
    } else if (*before <= op.start) {
      gaps.push_back(op.start - *before);
    }
  }
  return {upper_median(std::move(launches)), upper_median(std::move(gaps))};
}

/// Operations by their ends, where any is part of a graph.
class Ends {
 public:
  explicit Ends(const Draft& draft) : draft_(draft) {
    if (std::ranges::none_of(draft.calls, is_graph)) return;
    by_end_.resize(draft.ops.size());
    for (std::uint32_t i = 0; i < by_end_.size(); ++i) by_end_[i] = i;
    std::stable_sort(by_end_.begin(), by_end_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return draft_.ops[a].end < draft_.ops[b].end;
    });
  }
  /// What ended last in the kUnexplained before `op` starts, launched earlier, on another stream;
  /// one of both is part of a graph.
  [[nodiscard]] std::uint32_t just_before(std::uint32_t op) const {
    const DraftOp& waits = draft_.ops[op];
    auto place = std::upper_bound(
        by_end_.begin(), by_end_.end(), waits.start,
        [&](TraceTime at, std::uint32_t i) { return at < draft_.ops[i].end; });
    while (place != by_end_.begin()) {
      const std::uint32_t before = *--place;
      if (waits.start - draft_.ops[before].end > kUnexplained) break;
      const bool other = draft_.stream_of(draft_.ops[before]) != draft_.stream_of(waits);
      if (before < op && other && (in_graph(op) || in_graph(before))) return before;
    }
    return program::kNoIndex;
  }

 private:
  [[nodiscard]] static bool is_graph(const DraftCall& call) {
    return call.recorded_kind == traces::HostCallKind::kLaunchGraph || call.op_count > 1;
  }
  [[nodiscard]] bool in_graph(std::uint32_t op) const {
    return is_graph(draft_.calls[draft_.ops[op].call]);
  }

  const Draft& draft_;
  std::vector<std::uint32_t> by_end_;
};

void assign(Draft& draft, std::uint32_t index, const Ends& ends, const UsualLags& usual) {
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
  const Duration residual = op.start - latest;
  const std::uint32_t awaited =
      residual > kUnexplained ? ends.just_before(index) : program::kNoIndex;
  if (awaited != program::kNoIndex) {
    draft.add_edge(op, awaited, op.start - draft.ops[awaited].end);
    draft.counters.add(kInferredEdges);
    return;
  }
  *binding += residual;
  if (residual > kUnexplained) draft.counters.add(kUnexplainedDelays);
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

void assign_lags(Draft& draft) {
  const UsualLags usual = measure(draft);
  const Ends ends(draft);
  for (std::uint32_t i = 0; i < draft.ops.size(); ++i) {
    DraftOp& op = draft.ops[i];
    const std::optional<TraceTime> before = follows(draft, op);
    if (before && *before > op.start) draft.counters.add(kPassContradictions);
    drop_contradicted_edges(draft, op);
    assign(draft, i, ends, usual);
  }
}

}  // namespace bubblesim::workload
