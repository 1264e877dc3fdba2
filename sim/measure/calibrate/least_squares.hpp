// Robust least squares with bounds, by Levenberg and Marquardt, on Eigen: the solver of the fit of
// contention. notebooks/lab has the same for constants of configs.
#pragma once

#include <Eigen/Dense>
#include <functional>

#include "sim/base/result.hpp"

namespace bubblesim::measure {

/// Residuals of a vector of parameters; a fault ends the fit.
using Residuals = std::function<Result<Eigen::VectorXd>(const Eigen::VectorXd&)>;

struct FitResult {
  Eigen::VectorXd parameters;
  double loss = 0;  ///< mean over the residuals
};

/// A residual r counts as 2 s^2 (sqrt(1 + (r/s)^2) - 1) with s = 5 %: large ones pull less.
/// Parameters stay within [low, high]; `start` is clamped to that. Derivatives are forward
/// differences. Deterministic. Fault: a residual is not finite at the start, or at a point of a
/// forward difference. A step to a point with such a residual is rejected.
[[nodiscard]] Result<FitResult> fit_least_squares(const Residuals& residuals,
                                                  const Eigen::VectorXd& start,
                                                  const Eigen::VectorXd& low,
                                                  const Eigen::VectorXd& high);

}  // namespace bubblesim::measure
