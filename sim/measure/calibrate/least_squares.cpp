#include "sim/measure/calibrate/least_squares.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace bubblesim::measure {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kScale = 0.05;
constexpr int kIterations = 60;       // at most
constexpr double kLeastGain = 1e-5;   // relative; a step that gains less is the last
constexpr double kMostDamping = 1e8;

double loss_of(const VectorXd& r) {
  if (r.size() == 0) return 0;
  constexpr double s = kScale * kScale;
  return (2 * s * ((1 + r.array().square() / s).sqrt() - 1)).mean();
}

// The loss as weighted least squares.
VectorXd weights_of(const VectorXd& r) {
  return (1 + r.array().square() / (kScale * kScale)).sqrt().inverse();
}

Result<VectorXd> finite(const Residuals& residuals, const VectorXd& at) {
  BUBBLESIM_ASSIGN_OR_RETURN(VectorXd r, residuals(at));
  for (Eigen::Index i = 0; i < r.size(); ++i) {
    if (std::isfinite(r[i])) continue;
    return fail("a fit's residual " + std::to_string(i + 1) + " of " + std::to_string(r.size()) +
                " is " + std::to_string(r[i]) + "; expected measurements and predictions above 0");
  }
  return r;
}

Result<MatrixXd> derivatives(const Residuals& residuals, const VectorXd& at, const VectorXd& r,
                             const VectorXd& low, const VectorXd& high) {
  MatrixXd out(r.size(), at.size());
  for (Eigen::Index i = 0; i < at.size(); ++i) {
    double step = std::max(1e-3 * std::abs(at[i]), 1e-6 * (high[i] - low[i]));
    if (at[i] + step > high[i]) step = -step;
    VectorXd moved = at;
    moved[i] += step;
    BUBBLESIM_ASSIGN_OR_RETURN(const VectorXd there, finite(residuals, moved));
    out.col(i) = (there - r) / step;
  }
  return out;
}

}  // namespace

Result<FitResult> fit_least_squares(const Residuals& residuals, const VectorXd& start,
                                    const VectorXd& low, const VectorXd& high) {
  FitResult out{start.cwiseMax(low).cwiseMin(high), 0};
  VectorXd& at = out.parameters;
  BUBBLESIM_ASSIGN_OR_RETURN(VectorXd r, finite(residuals, at));
  out.loss = loss_of(r);
  double damping = 1e-2;
  for (int i = 0; i < kIterations && damping < kMostDamping; ++i) {
    BUBBLESIM_ASSIGN_OR_RETURN(const MatrixXd j,
                               derivatives(residuals, at, r, low, high));
    const VectorXd w = weights_of(r);
    const MatrixXd normal = j.transpose() * w.asDiagonal() * j;
    const VectorXd gradient = j.transpose() * (w.array() * r.array()).matrix();
    const double before = out.loss;
    for (; damping < kMostDamping; damping *= 4) {
      MatrixXd damped = normal;
      damped.diagonal() += damping * normal.diagonal();
      damped.diagonal().array() += 1e-12 * std::max(1.0, normal.diagonal().maxCoeff());
      const VectorXd tried = (at - damped.ldlt().solve(gradient)).cwiseMax(low).cwiseMin(high);
      BUBBLESIM_ASSIGN_OR_RETURN(VectorXd r_tried, residuals(tried));
      const double loss = loss_of(r_tried);
      if (!(loss < out.loss)) continue;
      at = tried;
      r = std::move(r_tried);
      out.loss = loss;
      damping = std::max(damping / 5, 1e-9);
      break;
    }
    if (before - out.loss < kLeastGain * before) break;
  }
  return out;
}

}  // namespace bubblesim::measure
