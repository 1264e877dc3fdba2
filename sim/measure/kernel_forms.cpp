#include "sim/measure/kernel_forms.hpp"

#include <algorithm>
#include <limits>

#include "sim/program/kernel_class.hpp"

namespace bubblesim::measure {
namespace {

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
constexpr std::uint64_t kMostGridX = (std::uint64_t{1} << 31U) - 1;
constexpr std::uint32_t kMostThreads = 1024;
constexpr std::uint32_t kMostRegisters = 255;

program::LaunchNeeds needs_of(const traces::LaunchShape& shape) {
  return {std::max<std::uint64_t>(1, shape.blocks()),
          static_cast<std::uint32_t>(shape.threads_per_block()), shape.registers_per_thread,
          shape.shared_memory_bytes};
}

bool fits(const traces::LaunchShape& shape, const program::KernelProfile& profile,
          const hardware::GpuSpec& spec) {
  const program::LaunchNeeds needs = needs_of(shape);
  return needs.blocks == profile.blocks &&
         program::residency_of(needs, spec.sm).blocks_per_sm == profile.residency.blocks_per_sm;
}

}  // namespace

traces::LaunchShape shape_of(const program::KernelProfile& profile, const hardware::GpuSpec& spec) {
  const program::Residency& residency = profile.residency;
  const std::uint32_t warp = std::max<std::uint32_t>(1, spec.sm.warp_size);
  traces::LaunchShape shape;
  const std::uint64_t rows = (profile.blocks + kMostGridX - 1) / kMostGridX;
  shape.grid = {static_cast<std::uint32_t>((profile.blocks + rows - 1) / rows),
                static_cast<std::uint32_t>(rows), 1};
  const std::uint32_t threads = std::clamp(residency.warps * warp, warp, kMostThreads);
  shape.block = {threads, 1, 1};
  shape.registers_per_thread =
      static_cast<std::uint16_t>(std::min(kMostRegisters, residency.registers / threads));
  const std::uint64_t reserved = spec.sm.shared_memory_reserved_bytes;
  const std::uint64_t shared = residency.shared_memory_bytes;
  shape.shared_memory_bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(shared > reserved ? shared - reserved : 0,
                              std::numeric_limits<std::uint32_t>::max()));
  return shape;
}

capture::KernelForm form_of(const program::KernelProfile& profile, const traces::LaunchShape* shape,
                            std::string_view name, const hardware::GpuSpec& spec) {
  capture::KernelForm form;
  form.shape = shape != nullptr && fits(*shape, profile, spec) ? *shape : shape_of(profile, spec);
  form.bound = profile.kernel_class;
  form.tensor = program::classify_kernel(name) == program::KernelClass::kCompute;
  form.dram_share = profile.dram_share;
  form.issue_share = profile.issue_share;
  return form;
}

program::KernelProfile class_profile_of(const capture::KernelForm& form,
                                    const hardware::GpuSpec& spec) {
  return program::profile_kernel(needs_of(form.shape), form.bound, spec);
}

program::KernelProfile profile_of(const capture::KernelForm& form, const hardware::GpuSpec& spec) {
  program::KernelProfile profile = class_profile_of(form, spec);
  profile.dram_share = form.dram_share;
  profile.issue_share = form.issue_share;
  return profile;
}

}  // namespace bubblesim::measure
