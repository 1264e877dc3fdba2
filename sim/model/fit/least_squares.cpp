#include "sim/model/fit/least_squares.hpp"

#include <algorithm>
#include <cmath>

namespace bubblesim::model {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

double loss_of(const VectorXd& r, double scale) {
  if (r.size() == 0) return 0;
  const double s = scale * scale;
  return (2 * s * ((1 + r.array().square() / s).sqrt() - 1)).mean();
}

// Soft L1 as weighted least squares: w = 1 / sqrt(1 + (r/scale)^2).
VectorXd weights_of(const VectorXd& r, double scale) {
  return (1 + r.array().square() / (scale * scale)).sqrt().inverse();
}

MatrixXd jacobian(const Residuals& residuals, const VectorXd& at, const VectorXd& r,
                  const VectorXd& low, const VectorXd& high) {
  MatrixXd out(r.size(), at.size());
  for (Eigen::Index i = 0; i < at.size(); ++i) {
    double step = std::max(1e-3 * std::abs(at[i]), 1e-6 * (high[i] - low[i]));
    if (at[i] + step > high[i]) step = -step;
    VectorXd moved = at;
    moved[i] += step;
    out.col(i) = (residuals(moved) - r) / step;
  }
  return out;
}

}  // namespace

FitResult fit_least_squares(const Residuals& residuals, VectorXd start, const VectorXd& low,
                            const VectorXd& high, const FitOptions& options) {
  FitResult out{start.cwiseMax(low).cwiseMin(high), 0, 0};
  VectorXd r = residuals(out.parameters);
  out.loss = loss_of(r, options.scale);
  double damping = 1e-2;
  constexpr double kMostDamping = 1e8;
  while (out.iterations < options.iterations && damping < kMostDamping) {
    ++out.iterations;
    const MatrixXd j = jacobian(residuals, out.parameters, r, low, high);
    const VectorXd w = weights_of(r, options.scale);
    MatrixXd normal = j.transpose() * w.asDiagonal() * j;
    const VectorXd gradient = j.transpose() * (w.array() * r.array()).matrix();
    const double before = out.loss;
    while (damping < kMostDamping) {
      MatrixXd damped = normal;
      damped.diagonal() += damping * normal.diagonal();
      damped.diagonal().array() += 1e-12 * std::max(1.0, normal.diagonal().maxCoeff());
      const VectorXd tried =
          (out.parameters - damped.ldlt().solve(gradient)).cwiseMax(low).cwiseMin(high);
      const VectorXd r_tried = residuals(tried);
      const double loss = loss_of(r_tried, options.scale);
      if (loss < out.loss) {
        out.parameters = tried;
        out.loss = loss;
        r = r_tried;
        damping = std::max(damping / 5, 1e-9);
        break;
      }
      damping *= 4;
    }
    if (before - out.loss < options.least_gain * before) break;
  }
  return out;
}

}  // namespace bubblesim::model
