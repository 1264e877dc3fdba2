// Launch shapes that a recording lacks: the value used for them, and the rule by which their
// absence is a loss.
//
// A kernel without a recorded grid and block has `kUnknownShape`, never an invented one. The
// simulator estimates missing shapes, and reports that (sim/workload/estimated_shape.hpp).
#pragma once

#include <algorithm>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// The shape of launches without a recorded grid and block. A real grid has at least one block.
inline constexpr LaunchShape kUnknownShape{{0, 0, 0}, {0, 0, 0}, 0, 0};

[[nodiscard]] inline bool is_known(const LaunchShape& shape) {
  return shape.blocks() > 0 && shape.threads_per_block() > 0;
}

/// Whether `op` was launched with a grid and a block, recorded or not.
[[nodiscard]] inline bool has_shape(const DeviceOp& op) {
  return op.kind == DeviceOpKind::kKernel || op.kind == DeviceOpKind::kCollective;
}

/// Whether the launch shape of `op` was recorded.
[[nodiscard]] inline bool has_known_shape(const RankTrace& trace, const DeviceOp& op) {
  return has_shape(op) && op.shape.index() < trace.shapes.size() &&
         is_known(trace.shapes[op.shape]);
}

/// The run time of a rank's kernels, without collectives, whose time is mostly waiting. Time in
/// which two kernels run counts twice.
struct ShapedTime {
  Duration all{};
  Duration without_shape{};  ///< of kernels whose launch shape is not known

  [[nodiscard]] double unknown_share() const {
    return all > Duration{} ? to_seconds(without_shape) / to_seconds(all) : 0;
  }
  void add(const ShapedTime& other) {
    all += other.all;
    without_shape += other.without_shape;
  }
};

[[nodiscard]] inline ShapedTime kernel_time(const RankTrace& trace) {
  ShapedTime time;
  for (const DeviceOp& op : trace.device_ops) {
    if (op.kind != DeviceOpKind::kKernel) continue;
    const Duration length = std::max(Duration{}, op.duration);
    time.all += length;
    if (!has_known_shape(trace, op)) time.without_shape += length;
  }
  return time;
}

/// Above this share of a rank's kernel time, missing shapes are a loss: an error of that size in
/// the GPU's occupancy changes the throughput of the clients that share the GPU with the rank.
inline constexpr double kMostTimeWithoutShape = 0.05;

inline constexpr CounterSpec kShapesMostlyMissing{
    "launch_shapes_mostly_missing", Severity::kLoss,
    "ranks where kernels of over 5 % of the kernel time have no recorded grid and block: how much "
    "of the GPU they take can only be estimated"};

/// Counts a rank whose missing shapes are a loss. Importers call it once, at their end.
inline void count_missing_shapes(RankTrace& trace) {
  if (kernel_time(trace).unknown_share() > kMostTimeWithoutShape) {
    trace.counters.add(kShapesMostlyMissing);
  }
}

}  // namespace bubblesim::traces
