// How much kernels slow each other, measured: victims of each class and size beside one or two
// aggressors of each class and size.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/hardware/gpu_spec.hpp"
#include "sim/measure/calibrate/probe.hpp"
#include "sim/program/kernel_profile.hpp"

namespace bubblesim::measure {

/// A kernel that is resident, whole.
struct Occupant {
  program::KernelClass kernel_class = program::KernelClass::kUnknown;
  std::uint64_t blocks = 1;  ///< of probe_needs()
  friend bool operator==(const Occupant&, const Occupant&) = default;
};

/// One cell of the grid: a kernel beside others.
struct ContentionCell {
  Occupant victim;
  std::vector<Occupant> others;  ///< one or two
  Spread slowdown;               ///< its duration relative to alone
  bool held_out = false;         ///< judged, never fitted
};

/// Three jobs of one process, each with a stream. The victims: short kernels of all classes and of
/// four sizes (blocks for a quarter of the SMs to all, one each), in an endless row. The first
/// aggressor: the same forms, so long that all victims run within one, with pauses in which they
/// run without it. The second: of each class, filling all SMs, as long as the first one's whole
/// round, and as long a pause. So each victim is measured alone, beside either aggressor and beside
/// both, again and again; clocks that drift do so for all of them. Sums of up to three kernels'
/// shares show saturation where two would not.
[[nodiscard]] ProbeRun contention_run(const hardware::GpuSpec& spec);

/// Executions of victims that lie within one execution of each aggressor or touch none of it,
/// relative to the median of executions alone. Every second cell is held out, so that each form is
/// in both halves.
[[nodiscard]] std::vector<ContentionCell> contention_cells(const Records& records,
                                                           const hardware::GpuSpec& spec);

/// Cells with fewer executions are left out.
inline constexpr std::size_t kLeastInCell = 3;

}  // namespace bubblesim::measure
