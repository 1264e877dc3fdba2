// The instructions of one loop of a stand-in, chosen to take about the form's shares of issue slots
// and DRAM bandwidth. The number of loops is measured (stand_in_fit.hpp).
#pragma once

#include <cstdint>

#include "capture/replay/cuda/device_context.hpp"
#include "capture/replay/cuda/residency.hpp"
#include "capture/replay/cuda/stand_in_arguments.hpp"
#include "capture/replay/job_plan.hpp"

namespace bubblesim::capture::cuda {

/// Units of StandInArguments for one loop.
struct Mix {
  std::uint32_t sparse = 0;
  std::uint32_t dense = 0;
  std::uint32_t wide = 0;
  std::uint32_t tensor = 0;
  std::uint32_t memory_rate = 0;  ///< memory steps in kRateUnit loops
  [[nodiscard]] std::uint32_t units() const { return sparse + dense + wide + tensor; }
  friend bool operator==(const Mix&, const Mix&) = default;
};

/// 64 steps a loop.
inline constexpr std::uint32_t kMostMemoryRate = 64 * kRateUnit;

/// Shares that a form leaves at 0 are taken from its bound: memory 0.8 of DRAM and 0.2 of issue
/// slots, compute 0.05 and 0.8, unknown 0.3 and 0.4. These are assumed, not measured.
struct Shares {
  double dram = 0;
  double issue = 0;
};
[[nodiscard]] Shares shares_of(const KernelForm& form);

/// A loop of four units (about 96 cycles of a warp alone) whose issue rate is nearest the share,
/// by nominal latencies of sm_90. Its rate of memory steps is a first guess.
[[nodiscard]] Mix mix_of(const DeviceFacts& facts, const KernelForm& form,
                         const StandInShape& shape);

/// Bytes of DRAM traffic that the stand-in should cause in `solo`; 0 if the driver does not give
/// DRAM's rate. Share 1 is the rate that memory steps reach, 0.836 of the interface's rate.
[[nodiscard]] double wanted_traffic(const DeviceFacts& facts, const KernelForm& form,
                                    Duration solo);
/// Bytes of DRAM traffic when every block runs `loops` loops.
[[nodiscard]] double traffic_of(const StandInShape& shape, const Mix& mix, double loops);

}  // namespace bubblesim::capture::cuda
