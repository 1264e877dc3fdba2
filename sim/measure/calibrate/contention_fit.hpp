// Fits a device's contention constants so that gpu::Contention gives the measured slowdowns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/hardware/gpu_spec.hpp"
#include "sim/measure/calibrate/probe.hpp"

namespace bubblesim::measure {

// Measured slowdowns of kernels by each other: victims of each class and size beside one or two
// aggressors of each class and size.

/// A kernel with all its blocks resident.
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
/// four sizes (one block an SM on a quarter to all SMs), in an endless row. The first aggressor:
/// the same forms, each so long that all victims run within it, with pauses in which they run
/// alone. The second aggressor: kernels of each class that fill all SMs; each kernel, and the pause
/// after it, lasts a whole round of the first. So each victim is measured alone, beside either
/// aggressor and beside both, in turn, so that drifting clocks affect all alike. Sums of up to
/// three kernels' shares show saturation where two would not.
[[nodiscard]] RigSetup contention_run(const hardware::GpuSpec& spec);

/// Executions of victims that lie within one execution of each aggressor or touch none of it,
/// relative to the median of executions alone. Every second cell is held out, so that each form is
/// in both halves.
[[nodiscard]] std::vector<ContentionCell> contention_cells(const Records& records,
                                                           const hardware::GpuSpec& spec);

/// Cells with fewer executions are left out.
inline constexpr std::size_t kLeastInCell = 3;

/// The factor on the victim's duration by gpu::Contention with this device's constants.
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
  std::string kept;      ///< why the base's value is kept; empty: it was fitted
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

/// Slowdowns of real kernels are no more precise than this: smaller residuals are no evidence about
/// a parameter.
inline constexpr double kContentionNoise = 0.005;
/// A parameter whose standard error is larger is not identified.
inline constexpr double kMostParameterError = 0.1;

/// Damped least squares with bounds (fit_least_squares) on the relative errors of the cells that
/// are not held out, from the base's constants and from spread starts; the best fit counts.
/// Parameters that the cells do not identify then get the base's value one by one, the least known
/// first, and the others are fitted again, unless that makes the fit worse by more than the noise.
/// Deterministic.
[[nodiscard]] ContentionFit fit_contention(const std::vector<ContentionCell>& cells,
                                           const hardware::GpuSpec& base);

}  // namespace bubblesim::measure
