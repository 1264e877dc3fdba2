#include "sim/gpu/contention.hpp"

namespace bubblesim::gpu {
namespace {

std::array<double, 3> boundness_of(const hardware::ContentionSpec& spec) {
  std::array<double, 3> boundness{};
  boundness[static_cast<std::size_t>(KernelClass::kUnknown)] =
      spec.unknown_kernel_memory_boundness;
  boundness[static_cast<std::size_t>(KernelClass::kCompute)] =
      spec.compute_kernel_memory_boundness;
  boundness[static_cast<std::size_t>(KernelClass::kMemory)] =
      spec.memory_kernel_memory_boundness;
  return boundness;
}

}  // namespace

Contention::Contention(const hardware::ContentionSpec& spec, std::uint32_t sm_count)
    : boundness_(boundness_of(spec)), l2_slowdown_(spec.l2_slowdown), sm_count_(sm_count) {}

}  // namespace bubblesim::gpu
