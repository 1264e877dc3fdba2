#include "sim/workload/estimated_shape.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/workload/build_counters.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::workload {
namespace {

constexpr Duration kFillsGpu{20'000};   // shortest kernel that fills the GPU
constexpr Duration kMemoryWave{6'000};  // a wave of blocks of a memory-bound kernel

constexpr traces::LaunchShape kUsualBlock{{1, 1, 1}, {128, 1, 1}, 32, 0};
constexpr traces::LaunchShape kComputeBlock{{1, 1, 1}, {256, 1, 1}, 128, 0};
constexpr traces::LaunchShape kCollective{{8, 1, 1}, {544, 1, 1}, 96, 0};

double waves_of(Duration duration, program::KernelClass kernel_class) {
  if (duration <= kFillsGpu) return 1;
  if (kernel_class == program::KernelClass::kMemory) {
    return std::floor(to_seconds(duration) / to_seconds(kMemoryWave));
  }
  return std::round(std::sqrt(to_seconds(duration) / to_seconds(kFillsGpu)));
}

}  // namespace

program::LaunchNeeds launch_needs(const traces::LaunchShape& shape) {
  return {std::max<std::uint64_t>(1, shape.blocks()),
          static_cast<std::uint32_t>(shape.threads_per_block()), shape.registers_per_thread,
          shape.shared_memory_bytes};
}

traces::LaunchShape estimate_kernel_shape(Duration duration, program::KernelClass kernel_class,
                                          const hardware::GpuSpec& spec) {
  traces::LaunchShape shape =
      kernel_class == program::KernelClass::kCompute ? kComputeBlock : kUsualBlock;
  const double resident = static_cast<double>(spec.sm_count) *
                          program::residency_of(launch_needs(shape), spec.sm).blocks_per_sm;
  // Whole microseconds: kernels that differ by less share a profile.
  const auto microseconds = std::chrono::floor<std::chrono::microseconds>(duration);
  const double share = std::min(1.0, to_seconds(microseconds) / to_seconds(kFillsGpu));
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  const double blocks = std::round(resident * share * waves_of(duration, kernel_class));
  shape.grid[0] = static_cast<std::uint32_t>(std::clamp(blocks, 1.0, kMost));
  return shape;
}

traces::LaunchShape estimate_collective_shape() { return kCollective; }

void ShapeEstimator::collect_known() {
  known_.emplace();
  for (const traces::DeviceOp& op : trace_.device_ops) {
    if (has_known_shape(trace_, op)) (*known_)[op.name].emplace_back(op.duration, op.shape);
  }
  for (auto& [name, launches] : *known_) std::stable_sort(launches.begin(), launches.end());
}

traces::LaunchShape ShapeEstimator::estimate(const traces::DeviceOp& op,
                                             program::KernelClass kernel_class) {
  if (!known_) collect_known();
  const auto same_name = known_->find(op.name);
  if (same_name != known_->end()) {
    const Known& launches = same_name->second;
    auto nearest = std::ranges::lower_bound(launches, op.duration, {}, &Known::value_type::first);
    const bool last = nearest == launches.end();
    if (nearest != launches.begin() &&
        (last || op.duration - std::prev(nearest)->first <= nearest->first - op.duration)) {
      --nearest;
    }
    return trace_.shapes[nearest->second];
  }
  if (op.kind == traces::DeviceOpKind::kCollective) return estimate_collective_shape();
  return estimate_kernel_shape(op.duration, kernel_class, spec_);
}

void EstimatedTime::count(CounterSet& counters) const {
  if (launches == 0) return;
  counters.add(kShapesEstimated, launches);
  counters.add(kKernelTime, static_cast<std::uint64_t>(kernels.count()));
  counters.add(kEstimatedKernelTime, static_cast<std::uint64_t>(estimated.count()));
  const double share = to_seconds(estimated) / std::max(1e-9, to_seconds(kernels));
  if (share > traces::kMostTimeWithoutShape) counters.add(kShapesMostlyEstimated);
}

}  // namespace bubblesim::workload
