// The solver of the fit of contention.
#include "sim/measure/calibrate/least_squares.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace bubblesim::measure {
namespace {

TEST(LeastSquares, finds_a_line_through_points_and_shrugs_at_an_outlier) {
  // y = 3 + 2 x at x = 0..9; one point is 100 off.
  const Residuals residuals = [](const Eigen::VectorXd& p) {
    Eigen::VectorXd r(10);
    for (int i = 0; i < 10; ++i) r[i] = p[0] + p[1] * i - (3 + 2 * i + (i == 4 ? 100 : 0));
    return r;
  };
  const Eigen::VectorXd low = Eigen::VectorXd::Constant(2, -10);
  const Eigen::VectorXd high = Eigen::VectorXd::Constant(2, 10);
  const FitResult fit = *fit_least_squares(residuals, Eigen::VectorXd::Zero(2), low, high);
  EXPECT_NEAR(fit.parameters[0], 3, 0.05);
  EXPECT_NEAR(fit.parameters[1], 2, 0.02);
}

TEST(LeastSquares, stays_within_bounds) {
  const Residuals residuals = [](const Eigen::VectorXd& p) {
    return Eigen::VectorXd::Constant(1, p[0] - 5);
  };
  const FitResult fit = *fit_least_squares(residuals, Eigen::VectorXd::Zero(1),
                                          Eigen::VectorXd::Zero(1), Eigen::VectorXd::Ones(1));
  EXPECT_NEAR(fit.parameters[0], 1, 1e-9);
}

TEST(LeastSquares, residuals_that_are_not_finite_are_a_fault_at_the_start_and_no_step_later) {
  const Eigen::VectorXd one = Eigen::VectorXd::Ones(1);
  const auto log_of = [](const Eigen::VectorXd& p) -> Result<Eigen::VectorXd> {
    return Eigen::VectorXd{p.array().log() + 3};
  };
  const auto fault = fit_least_squares(log_of, 0 * one, 0 * one, one);
  ASSERT_FALSE(fault);
  EXPECT_THAT(fault.error().message, testing::HasSubstr("residual 1 of 1 is -inf"));
  const auto found = fit_least_squares(log_of, one, -9 * one, 9 * one);  // 1 - 3 has no logarithm
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->parameters[0], std::exp(-3.0), 1e-3);
}

}  // namespace
}  // namespace bubblesim::measure
