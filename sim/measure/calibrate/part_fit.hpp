// Fits the speed of kernels on a part of the SMs: the constants of hardware::PartSpec from times of
// kernels that ran alone on some of the SMs, by the GPU model's formula (sim/gpu/contention.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/kinds.hpp"

namespace bubblesim::measure {

/// The time of a kernel of many equal blocks, one at a time on an SM, on some of the SMs.
struct PartTime {
  program::KernelClass kernel_class{};
  std::uint32_t sms = 0;
  double waves = 1;     ///< over the waves of the same kernel on all SMs
  double relative = 0;  ///< duration over that of the same kernel on all SMs
};

/// SMs that a client of this MPS percentage has.
[[nodiscard]] std::uint32_t sms_of(std::uint32_t percentage, const hardware::GpuSpec& spec);

/// Waves of `blocks` on this many SMs, over those on all SMs.
[[nodiscard]] double relative_waves(std::uint64_t blocks, std::uint32_t sms,
                                    const hardware::GpuSpec& spec);

/// Root mean square of the relative times' relative errors. Precondition: there are parts.
[[nodiscard]] double part_error(const std::vector<PartTime>& parts, const hardware::GpuSpec& spec);

struct PartFit {
  hardware::PartSpec part;
  double error = 0;  ///< part_error
};

/// Least squares, to a thousandth. Precondition: there are parts.
[[nodiscard]] PartFit fit_parts(const std::vector<PartTime>& parts, hardware::GpuSpec spec);

}  // namespace bubblesim::measure
