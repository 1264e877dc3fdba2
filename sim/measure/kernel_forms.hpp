// Between what the GPU model knows of a kernel and what a plan says of it.
#pragma once

#include <string_view>

#include "capture/replay/job_plan.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/kernel_profile.hpp"
#include "traces/trace.hpp"

namespace bubblesim::measure {

/// A shape of which the device holds as many blocks an SM as of the profile, with the profile's
/// warps, and registers and shared memory that come to what it takes: for programs that do not say
/// how their kernels were launched.
[[nodiscard]] traces::LaunchShape shape_of(const program::KernelProfile& profile,
                                           const hardware::GpuSpec& spec);

/// What a plan says of such a kernel. `shape` may be null: not known.
[[nodiscard]] capture::KernelForm form_of(const program::KernelProfile& profile,
                                          const traces::LaunchShape* shape, std::string_view name,
                                          const hardware::GpuSpec& spec);

/// What the GPU model knows of such a form, with the shares that the device gives its class.
[[nodiscard]] program::KernelProfile class_profile_of(const capture::KernelForm& form,
                                                  const hardware::GpuSpec& spec);

/// What the GPU model knows of such a form.
[[nodiscard]] program::KernelProfile profile_of(const capture::KernelForm& form,
                                            const hardware::GpuSpec& spec);

}  // namespace bubblesim::measure
