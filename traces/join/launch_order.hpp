// The operations of each stream in the order of their launches: what an event record comes after,
// what a stream's wait holds back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::traces {

class LaunchOrder {
 public:
  /// The operations of `trace` are final: sorted, launches linked.
  explicit LaunchOrder(const RankTrace& trace);

  /// The edge from the last operation launched on `source` before `record_call` to the first
  /// launched on `stream` after `wait_call` (indices of host calls). Nothing: one of them is not in
  /// the trace.
  [[nodiscard]] std::optional<Edge> edge(std::uint32_t source, std::uint32_t record_call,
                                         std::uint32_t stream, std::uint32_t wait_call) const;

 private:
  struct LaunchedOp {
    std::uint32_t launch;
    std::uint32_t op;
    friend auto operator<=>(const LaunchedOp&, const LaunchedOp&) = default;
  };
  std::vector<std::vector<LaunchedOp>> streams_;
};

}  // namespace bubblesim::traces
