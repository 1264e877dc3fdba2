// What policies are told of the GPU on which two programs run.
#pragma once

#include <optional>
#include <string>

#include "capture/control/job_environment.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::capture {

struct GpuFacts {
  policy::GpuInfo gpu;
  std::string text;  ///< where they are from, a sentence
  bool is_only_one = true;    ///< programs see no other, as far as the driver says
  std::optional<Bytes> free;  ///< memory that no process has; nothing: the driver does not say
};

/// Name, SMs and memory as the driver says them by NVML, the rest, and what it does not say, as
/// `constants` have it. The card is `device` (UUID or index), if empty the first that
/// CUDA_VISIBLE_DEVICES of `environment` names, else number 0 as nvidia-smi counts. Priorities do
/// not change: the gate cannot do it.
[[nodiscard]] GpuFacts facts_of_gpu(const policy::GpuInfo& constants, const std::string& device,
                                    const Variables& environment,
                                    const std::string& nvml = "libnvidia-ml.so.1");

}  // namespace bubblesim::capture
