// The stand-in of each operation of a plan: shape, kernel, and the loops for the plan's duration
// when it runs alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/cuda/cuda_device.hpp"
#include "capture/replay/cuda/device_context.hpp"
#include "capture/replay/cuda/record_ring.hpp"
#include "capture/replay/cuda/residency.hpp"
#include "capture/replay/cuda/stand_in_fit.hpp"
#include "capture/replay/cuda/stand_in_mix.hpp"
#include "capture/replay/job_plan.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture::cuda {

/// How one operation is launched; copies and memsets have no kernel.
struct StandIn {
  KernelHandle kernel = nullptr;
  StandInShape shape;
  Mix mix;
  std::uint64_t first_line = 0;  ///< of the streamed buffer (StandInArguments)
  std::uint64_t advance = 0;
  double base = 0;   ///< loops = base + slope * factor; of a collective, nanoseconds
  double slope = 0;
  double excess_ns = 0;  ///< even its shortest form lasts this much longer than its solo time
  std::uint32_t blocks_per_sm = 0;  ///< by the occupancy calculator
  std::uint32_t uncounted = 0;      ///< StandInArguments
};

struct StandInNeeds {
  DeviceContext& context;
  HostClock& clock;
  const DeviceMemory& memory;
  const RecordRing& ring;  ///< one operation more than the plan, for measuring
  FitCache& cache;
  CounterSet& counters;
  std::function<void(const std::string&)> progress;
  const CudaOptions& options;
};

/// On the whole GPU, which should be idle: the primary context is made current. Equal forms of
/// equal durations are measured once. Fault: the driver's, with the operation's name.
[[nodiscard]] Result<std::vector<StandIn>> make_stand_ins(const StandInNeeds& needs,
                                                          const JobPlan& plan);

/// A stand-in's arguments for the operation's next execution. `scale` 0: `factor` is used here.
[[nodiscard]] StandInArguments arguments_of(const StandIn& stand_in, const RecordRing& ring,
                                            std::uint32_t op, const DeviceMemory& memory,
                                            double factor, DevicePointer scale);

}  // namespace bubblesim::capture::cuda
