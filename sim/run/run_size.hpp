// The size of a run, estimated before it starts, so that a rate with three zeros too many is
// refused at once, not after minutes of work and all of the machine's memory.
#pragma once

#include "sim/base/result.hpp"
#include "sim/run/loaded_run.hpp"

namespace bubblesim::run {

/// An upper bound over all policies; fillers may find less room.
struct RunSize {
  double requests = 0;  ///< of online fillers
  double kernels = 0;   ///< and copies, of training and fillers, each at its pace alone
};

/// A larger run is refused unless it is forced. A request takes up to 32 bytes until the run ends
/// (its arrival while it waits, its latency): 3.2 GB. Kernels that share a GPU are simulated at
/// about 3 million a second on one core (tests/bench/README.md): 9 hours.
inline constexpr double kMostRequests = 1e8;
inline constexpr double kMostKernels = 1e11;

[[nodiscard]] RunSize size_of(const LoadedRun& run);

/// Fault: `run` is larger than these limits, with the memory and time that it would take.
[[nodiscard]] Result<void> check_size(const LoadedRun& run);

}  // namespace bubblesim::run
