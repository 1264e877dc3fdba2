// The ranges "nccl:all_reduce" that PyTorch puts around the launches of its collectives. With
// emit_nvtx the name is longer: "nccl:all_to_all, op_id = 991144".
#pragma once

#include <optional>
#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::traces {

class NcclRanges {
 public:
  /// Precondition: the trace's markers are in order of start.
  explicit NcclRanges(const RankTrace& trace);

  /// The kind that the innermost range around the launch names. Nothing if there is no such range,
  /// or if `known` is certain. It is uncertain for unknown kinds and for kernels named SendRecv,
  /// which also do all-to-alls.
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
