// The description of a GPU for policies: the same for a simulated GPU, for a real one on which
// plans are launched, and for one on which programs already run.
#pragma once

#include <cstdint>

#include "sim/hardware/gpu_spec.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::schedule {

/// The caller that carries out a policy's actions. A gate cannot change the priority of a running
/// client.
enum class DrivenBy : std::uint8_t { kSimulator, kGate };

[[nodiscard]] inline policy::GpuInfo gpu_info(const hardware::GpuSpec& gpu, DrivenBy by) {
  return {.name = gpu.name,
          .sm_count = gpu.sm_count,
          .tpc_sms = gpu.tpc_sms,
          .memory = gpu.memory,
          .time_slice = gpu.time_slice,
          .context_switch = gpu.context_switch,
          .dram_bandwidth = gpu.dram_bandwidth,
          .host_bandwidth = gpu.host_bandwidth,
          .mig = gpu.mig,
          .priority_changes = by == DrivenBy::kSimulator,
          .compute_capability = 10 * gpu.compute_major + gpu.compute_minor};
}

}  // namespace bubblesim::schedule
