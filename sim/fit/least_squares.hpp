// Robust least squares with bounds, by Levenberg and Marquardt, on Eigen: the solver of all fits.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <functional>

#include "sim/base/result.hpp"

namespace bubblesim::fit {

/// Residuals of a vector of parameters; a fault ends the fit.
using Residuals = std::function<Result<Eigen::VectorXd>(const Eigen::VectorXd&)>;

/// How a residual r counts, with u = r / scale: as r^2, as 2 scale^2 (sqrt(1 + u^2) - 1), or as
/// scale^2 log(1 + u^2). Residuals beyond the scale pull less under the last two.
enum class Loss : std::uint8_t { kSquares, kSoftL1, kCauchy };

struct FitOptions {
  Loss loss = Loss::kSoftL1;
  double scale = 0.05;
  double step = 0;           ///< of differences; 0: 1e-3 of a parameter, 1e-6 of its range at least
  int iterations = 60;       ///< at most
  double least_gain = 1e-5;  ///< relative; a step that gains less is the last
  /// Called with the residuals at the start (step 0) and after each step.
  std::function<void(int step, const Eigen::VectorXd& residuals)> progress;
};

struct FitResult {
  Eigen::VectorXd parameters;
  double loss = 0;  ///< mean over the residuals
  int iterations = 0;
};

/// Parameters stay within [low, high]; `start` is put into them. Derivatives are forward
/// differences. Deterministic. Fault: a residual at the start, or beside a point that was reached,
/// is not finite; steps to such points are not taken.
[[nodiscard]] Result<FitResult> fit_least_squares(const Residuals& residuals,
                                                  const Eigen::VectorXd& start,
                                                  const Eigen::VectorXd& low,
                                                  const Eigen::VectorXd& high,
                                                  const FitOptions& options = {});

}  // namespace bubblesim::fit
