// The size of a run, estimated before it starts, so that a rate with three zeros too many is
// refused at once, instead of after minutes of work with the memory full.
#pragma once

#include "sim/base/result.hpp"
#include "sim/run/loaded_run.hpp"

namespace bubblesim::run {

/// An upper bound over all policies; fillers may find less room.
struct RunSize {
  double requests = 0;  ///< of online fillers
  double kernels = 0;   ///< including copies; of training and fillers, each at its speed alone
};

/// A larger run is refused unless it is forced. A request takes up to 32 bytes until the run ends
/// (for its arrival and its latency): 3.2 GB in all. Kernels that share a GPU are simulated at
/// about 3 million a second on one core (tests/bench/README.md): 9 hours.
inline constexpr double kMostRequests = 1e8;
inline constexpr double kMostKernels = 1e11;

[[nodiscard]] RunSize size_of(const LoadedRun& run);

/// Fault: `run` is larger than these limits, with the memory and time needed.
[[nodiscard]] Result<void> check_size(const LoadedRun& run);

}  // namespace bubblesim::run
