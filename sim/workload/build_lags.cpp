// Splits the time between an operation's start and what held it into lags.
//
// Each dependency (launch, stream predecessor, edges) gets its usual lag: the median over the
// rank of the cases in which only that dependency can have held the operation. The dependency
// that was satisfied last gets whatever remains, so that replay meets the recorded start.
#include <algorithm>

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

Duration median(std::vector<Duration>& values) {
  if (values.empty()) return Duration{};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

UsualLags measure(const Draft& draft) {
  std::vector<Duration> launches;
  std::vector<Duration> gaps;
  for (const DraftOp& op : draft.ops) {
    const TraceTime called = draft.calls[op.call].start;
    if (op.start < called || !op.edges.empty()) continue;
    if (op.previous == kNoIndex || draft.ops[op.previous].end <= called) {
      launches.push_back(op.start - called);
    } else {
      gaps.push_back(op.start - draft.ops[op.previous].end);
    }
  }
  return {median(launches), median(gaps)};
}

void assign(Draft& draft, DraftOp& op, const UsualLags& usual) {
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
  if (op.previous != kNoIndex) consider(draft.ops[op.previous].end, op.gap);
  for (DraftEdge& edge : op.edges) consider(draft.ops[edge.before].end, edge.lag);
  const Duration residual = op.start - latest;
  *binding += residual;
  if (residual > kUnexplained) draft.counters.add(kUnexplainedDelays);
}

}  // namespace

void assign_lags(Draft& draft) {
  const UsualLags usual = measure(draft);
  for (DraftOp& op : draft.ops) {
    std::erase_if(op.edges, [&](const DraftEdge& edge) {
      return draft.ops[edge.before].end > op.start;  // trimming may have moved either
    });
    assign(draft, op, usual);
  }
}

}  // namespace bubblesim::workload
