// The constants of a device's contention that make gpu::Contention give measured slowdowns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/hardware/gpu_spec.hpp"
#include "sim/measure/calibrate/probe.hpp"
#include "sim/program/kernel_profile.hpp"

namespace bubblesim::measure {

// How much kernels slow each other, measured: victims of each class and size beside one or two
// aggressors of each class and size.

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
/// run without it. The second aggressor: kernels of each class that fill all SMs; each kernel, and
/// the pause after it, lasts a whole round of the first. So each victim is measured alone, beside
/// either aggressor and beside both, again and again; clocks that drift do so for all of them. Sums
/// of up to three kernels' shares show saturation where two would not.
[[nodiscard]] ProbeRun contention_run(const hardware::GpuSpec& spec);

/// Executions of victims that lie within one execution of each aggressor or touch none of it,
/// relative to the median of executions alone. Every second cell is held out, so that each form is
/// in both halves.
[[nodiscard]] std::vector<ContentionCell> contention_cells(const Records& records,
                                                           const hardware::GpuSpec& spec);

/// Cells with fewer executions are left out.
inline constexpr std::size_t kLeastInCell = 3;

/// How many times as long the victim lasts, by gpu::Contention with this device's constants.
[[nodiscard]] double predicted_slowdown(const ContentionCell& cell, const hardware::GpuSpec& spec);

/// One number of ContentionSpec.
struct ContentionParameter {
  const char* key;  ///< in the device file, below "contention"
  double hardware::ContentionSpec::*value;
  double most;      ///< the least is 0
};
[[nodiscard]] const std::vector<ContentionParameter>& contention_parameters();

struct FittedParameter {
  std::string key;
  double base = 0;
  double value = 0;
  double error = 0;      ///< standard error; 0 where it is not identified
  std::string kept;      ///< why it is the base's; empty: it was fitted
};

/// |predicted - measured| / measured.
struct FitErrors {
  std::size_t count = 0;
  double mean = 0, p50 = 0, p90 = 0, worst = 0;
};

struct ContentionFit {
  hardware::ContentionSpec spec;
  std::vector<FittedParameter> parameters;  ///< by contention_parameters()
  std::vector<double> predicted;            ///< by cell
  FitErrors fitted, held_out, base;         ///< base: the base's constants, on the held-out cells
  double condition = 0;   ///< of the derivatives by the fitted parameters; 0: none was fitted
};

/// Slowdowns of real kernels are not known better than this: residuals below it are no evidence
/// about a parameter.
inline constexpr double kContentionNoise = 0.005;
/// A parameter whose standard error is larger is not identified.
inline constexpr double kMostParameterError = 0.1;

/// Damped least squares with bounds (fit_least_squares) on the relative errors of the cells
/// that are not held out, from the base and from spread starts, the best of them. Parameters that
/// the cells do not identify are then given the base's value one by one, the least known first, and
/// the others fitted again; unless that makes the fit worse by more than the noise.
/// `base.contention` is where it starts. Deterministic.
[[nodiscard]] ContentionFit fit_contention(const std::vector<ContentionCell>& cells,
                                           const hardware::GpuSpec& base);

}  // namespace bubblesim::measure
