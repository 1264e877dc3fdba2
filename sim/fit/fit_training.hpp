// Fits what no kernel table tells, the host's costs and a software's slowdowns, to measured
// training jobs: least squares on the logarithm of simulated over measured time, on rows with the
// role `fit` only. Each evaluation synthesises and simulates every such row.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/fit/fitted_file.hpp"
#include "sim/validate/predict.hpp"

namespace bubblesim::fit {

/// Rows with the machine they ran on; all share the software that is fitted.
struct FitSample {
  validate::TrainingRow row;
  const validate::Testbed* machine = nullptr;
};

struct TrainingFit {
  std::vector<FittedConstant> constants;  ///< in us, or as factors ("times")
  synth::SoftwareSpec software;
  double mean_error_before = 0;  ///< mean |simulated / measured - 1|
  double mean_error_after = 0;
  int steps = 0;
};

/// Called after each step with the mean error so far.
using FitProgress = std::function<void(int step, double mean_error)>;

/// Starts from `software`. `names`: constants to move (see fit_constants()); empty: all. Rows are
/// evaluated on so many threads; the result is the same for any number.
[[nodiscard]] Result<TrainingFit> fit_training(const std::vector<FitSample>& samples,
                                               const synth::SoftwareSpec& software,
                                               const std::vector<std::string>& names,
                                               const FitProgress& progress,
                                               std::size_t threads = 1);

/// Names of all constants that can be fitted.
[[nodiscard]] std::vector<std::string> fit_constants();

}  // namespace bubblesim::fit
