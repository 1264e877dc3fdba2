// What the GPU model knows, as policies are told it: the same words for a simulated GPU, for plans
// of real launches, and for programs that run already.
#pragma once

#include "sim/gpu/gpu.hpp"
#include "sim/gpu/kernel_profile.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::schedule {

[[nodiscard]] inline policy::GpuInfo gpu_info(const hardware::GpuSpec& gpu) {
  return {.name = gpu.name,
          .sm_count = gpu.sm_count,
          .tpc_sms = gpu.tpc_sms,
          .memory = gpu.memory,
          .time_slice = gpu.time_slice,
          .context_switch = gpu.context_switch,
          .dram_bandwidth = gpu.dram_bandwidth,
          .host_bandwidth = gpu.host_bandwidth,
          .mig = {gpu.mig.compute_slices, gpu.mig.memory_slices, gpu.mig.slice_sms}};
}

[[nodiscard]] inline policy::LaunchKind launch_kind(gpu::WorkKind kind) {
  switch (kind) {
    case gpu::WorkKind::kKernel: return policy::LaunchKind::kKernel;
    case gpu::WorkKind::kCollective: return policy::LaunchKind::kCollective;
    case gpu::WorkKind::kCopy: return policy::LaunchKind::kCopy;
    case gpu::WorkKind::kMemset: return policy::LaunchKind::kMemset;
  }
  return policy::LaunchKind::kKernel;
}

[[nodiscard]] inline policy::KernelBound bound_of(gpu::KernelClass kernel_class) {
  switch (kernel_class) {
    case gpu::KernelClass::kCompute: return policy::KernelBound::kCompute;
    case gpu::KernelClass::kMemory: return policy::KernelBound::kMemory;
    case gpu::KernelClass::kUnknown: break;
  }
  return policy::KernelBound::kUnknown;
}

}  // namespace bubblesim::schedule
