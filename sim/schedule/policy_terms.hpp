// What the GPU model knows, as policies are told it: the same words for a simulated GPU, for plans
// of real launches, and for programs that run already.
#pragma once

#include "sim/gpu/gpu.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/policy/policy.hpp"
#include "sim/program/kernel_profile.hpp"

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

[[nodiscard]] inline policy::LaunchKind launch_kind(program::WorkKind kind) {
  switch (kind) {
    case program::WorkKind::kKernel: return policy::LaunchKind::kKernel;
    case program::WorkKind::kCollective: return policy::LaunchKind::kCollective;
    case program::WorkKind::kCopy: return policy::LaunchKind::kCopy;
    case program::WorkKind::kMemset: return policy::LaunchKind::kMemset;
  }
  return policy::LaunchKind::kKernel;
}

[[nodiscard]] inline policy::KernelBound bound_of(program::KernelClass kernel_class) {
  switch (kernel_class) {
    case program::KernelClass::kCompute: return policy::KernelBound::kCompute;
    case program::KernelClass::kMemory: return policy::KernelBound::kMemory;
    case program::KernelClass::kUnknown: break;
  }
  return policy::KernelBound::kUnknown;
}

}  // namespace bubblesim::schedule
