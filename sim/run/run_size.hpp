// What a run would simulate, estimated before it starts: a rate with three zeros too many is told
// at once, not after minutes of work and all of the machine's memory.
#pragma once

#include "sim/base/result.hpp"
#include "sim/run/loaded_run.hpp"

namespace bubblesim::run {

/// Over all policies, and at most: fillers may find less room.
struct RunSize {
  double requests = 0;  ///< of online fillers
  double kernels = 0;   ///< and copies, of training and fillers, each at the pace that it has alone
};

/// Beyond, a run is refused unless it is forced. A request takes up to 32 bytes until the run ends
/// (its arrival while it waits, its latency): 3.2 GB. Kernels beside others are simulated at about
/// 3 million a second on one core (tests/bench/README.md): 9 hours.
inline constexpr double kMostRequests = 1e8;
inline constexpr double kMostKernels = 1e11;

[[nodiscard]] RunSize size_of(const LoadedRun& run);

/// Fault: `run` is larger than that, with what it would take and what there is most of.
[[nodiscard]] Result<void> check_size(const LoadedRun& run);

}  // namespace bubblesim::run
