// The ranges "nccl:all_reduce" that PyTorch puts around the launches of its collectives. Under
// emit_nvtx, more follows: "nccl:all_to_all, op_id = 991144".
#pragma once

#include <optional>
#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::traces {

class NcclRanges {
 public:
  /// The trace's markers stand in order of start.
  explicit NcclRanges(const RankTrace& trace);

  /// The kind that the innermost range around the launch names, where what is `known` leaves it
  /// open: kernels named SendRecv carry all-to-alls too. Nothing: no such range, or none needed.
  [[nodiscard]] std::optional<CollectiveKind> kind_of(CollectiveKind known,
                                                      const HostCall& launch) const;

 private:
  struct Range {
    TraceTime start{};
    TraceTime end{};
    CollectiveKind kind = CollectiveKind::kUnknown;
  };
  std::vector<std::vector<Range>> ranges_;  ///< by thread, in order of start
};

}  // namespace bubblesim::traces
