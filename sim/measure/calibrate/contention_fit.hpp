// The constants of a device's contention that make gpu::Contention give measured slowdowns.
#pragma once

#include <string>
#include <vector>

#include "sim/hardware/gpu_spec.hpp"
#include "sim/measure/calibrate/contention_grid.hpp"

namespace bubblesim::measure {

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
