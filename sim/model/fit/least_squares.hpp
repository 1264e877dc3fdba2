// Inside of fits: robust least squares with bounds, by Levenberg and Marquardt, on Eigen.
#pragma once

#include <Eigen/Dense>
#include <functional>

namespace bubblesim::model {

/// Residuals of a vector of parameters.
using Residuals = std::function<Eigen::VectorXd(const Eigen::VectorXd&)>;

struct FitOptions {
  double scale = 0.05;      ///< residuals beyond this count linearly (soft L1), not squared
  int iterations = 60;      ///< at most
  double least_gain = 1e-5; ///< relative; a step that gains less is the last
};

struct FitResult {
  Eigen::VectorXd parameters;
  double loss = 0;      ///< mean of 2 scale^2 (sqrt(1 + (r/scale)^2) - 1)
  int iterations = 0;
};

/// Parameters stay within [low, high]; `start` is put into them. The derivative is a forward
/// difference of 1e-3 of a parameter (at least 1e-6 of its range). Deterministic.
[[nodiscard]] FitResult fit_least_squares(const Residuals& residuals, Eigen::VectorXd start,
                                          const Eigen::VectorXd& low, const Eigen::VectorXd& high,
                                          const FitOptions& options = {});

}  // namespace bubblesim::model
