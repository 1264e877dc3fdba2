// CUDA graphs, made beforehand, for launch calls of several operations.
//
// Kernels are the same inside and outside of graphs: each reads the number of its operation's
// execution from the operation's state, so one graph serves all launches. The driver runs launches
// of one graph one after the other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "capture/replay/cuda/operation_launcher.hpp"
#include "capture/replay/cuda/stream_set.hpp"
#include "sim/base/counters.hpp"

namespace bubblesim::capture::cuda {

struct Graph {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t stream = 0;                ///< stream of the launch: that of the first operation
  std::vector<std::uint32_t> other_streams;  ///< other streams of its operations
  std::uint32_t copies = 0;
  OwnGraphExec exec;
  DevicePointer scale = 0;  ///< float
  double scale_set = 1;     ///< by the last launch
};

class GraphSet {
 public:
  /// Captures each launch call of several operations in the plan on the job's streams, which are
  /// idle. Fault: the driver's, with the first operation's name.
  [[nodiscard]] static Result<std::unique_ptr<GraphSet>> make(DeviceContext& context,
                                                              const JobPlan& plan,
                                                              const DeviceMemory& memory,
                                                              const StreamSet& streams,
                                                              const OperationLauncher& launcher,
                                                              CounterSet& counters);

  /// Null: the plan has no launch call for this range.
  [[nodiscard]] Graph* find(std::uint32_t first, std::uint32_t count);
  /// The range that holds the operation; null: it is launched by itself.
  [[nodiscard]] const Graph* holding(std::uint32_t op) const;

 private:
  class Capture;
  GraphSet() = default;

  std::map<std::pair<std::uint32_t, std::uint32_t>, Graph> graphs_;
};

}  // namespace bubblesim::capture::cuda
