#include "traces/join/launch_order.hpp"

#include <algorithm>

namespace bubblesim::traces {

LaunchOrder::LaunchOrder(const RankTrace& trace) : streams_(trace.streams.size()) {
  for (std::uint32_t i = 0; i < trace.device_ops.size(); ++i) {
    const DeviceOp& op = trace.device_ops[i];
    if (op.launch != kNone) streams_[op.stream.index()].push_back({op.launch, i});
  }
  for (auto& ops : streams_) std::sort(ops.begin(), ops.end());
}

std::optional<Edge> LaunchOrder::edge(std::uint32_t source, std::uint32_t record_call,
                                      std::uint32_t stream, std::uint32_t wait_call) const {
  const auto& before = streams_[source];
  const auto& after = streams_[stream];
  const auto past = std::lower_bound(before.begin(), before.end(), LaunchedOp{record_call, 0});
  const auto next = std::lower_bound(after.begin(), after.end(), LaunchedOp{wait_call, 0});
  if (past == before.begin() || next == after.end()) return std::nullopt;
  const Edge edge{DeviceOpId{std::prev(past)->op}, DeviceOpId{next->op}, false};
  if (edge.before == edge.after) return std::nullopt;
  return edge;
}

}  // namespace bubblesim::traces
