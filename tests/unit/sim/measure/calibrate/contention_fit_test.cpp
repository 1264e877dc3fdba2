#include <gmock/gmock.h>

#include <cmath>

#include "sim/measure/calibrate/contention_fit.hpp"
#include "sim/measure/calibrate/least_squares.hpp"

namespace bubblesim::measure {
namespace {

using program::KernelClass;

hardware::GpuSpec device() {
  hardware::GpuSpec spec;
  spec.sm_count = 100;
  spec.contention = {.compute_kernel_dram_share = 0.2,
                     .memory_kernel_dram_share = 0.8,
                     .unknown_kernel_dram_share = 0.4,
                     .compute_kernel_issue_share = 0.6,
                     .memory_kernel_issue_share = 0.25,
                     .unknown_kernel_issue_share = 0.4,
                     .compute_kernel_memory_boundness = 0.1,
                     .memory_kernel_memory_boundness = 1.0,
                     .unknown_kernel_memory_boundness = 0.3,
                     .l2_slowdown = 0.2};
  return spec;
}

hardware::GpuSpec other_device() {
  hardware::GpuSpec spec = device();
  spec.contention = {.compute_kernel_dram_share = 0.15,
                     .memory_kernel_dram_share = 0.7,
                     .unknown_kernel_dram_share = 0.5,
                     .compute_kernel_issue_share = 0.75,
                     .memory_kernel_issue_share = 0.3,
                     .unknown_kernel_issue_share = 0.45,
                     .compute_kernel_memory_boundness = 0.2,
                     .memory_kernel_memory_boundness = 0.85,
                     .unknown_kernel_memory_boundness = 0.4,
                     .l2_slowdown = 0.35};
  return spec;
}

/// All victims of four sizes beside one aggressor, and beside a second that fills the GPU.
/// `wobble`: relative error of each measurement, in turn more and less.
std::vector<ContentionCell> grid(const hardware::GpuSpec& truth, double wobble) {
  constexpr std::array kClasses{KernelClass::kCompute, KernelClass::kMemory, KernelClass::kUnknown};
  std::vector<ContentionCell> cells;
  for (const KernelClass victim : kClasses) {
    for (const KernelClass first : kClasses) {
      for (const std::uint64_t blocks : {50U, 100U}) {
        for (std::size_t second = 0; second <= kClasses.size(); ++second) {
          ContentionCell cell{{victim, 100}, {{first, blocks}}, {}, cells.size() % 2 == 1};
          if (second < kClasses.size()) cell.others.push_back({kClasses[second], 100});
          // Hashes of the number, spread evenly over -1 to 1.
          const double turn = std::sin(12.9898 * static_cast<double>(cells.size() + 1)) * 43758.5;
          const double error = wobble * (2 * (turn - std::floor(turn)) - 1);
          const double slowdown = predicted_slowdown(cell, truth) * (1 + error);
          cell.slowdown = {10, slowdown, slowdown, slowdown};
          cells.push_back(cell);
        }
      }
    }
  }
  return cells;
}

TEST(ContentionFit, PredictionIsTheGpuModels) {
  // Two memory kernels that fill the GPU: D = 1.6, so 1.6 times as long, and (1 + 0.2 * 0.8) by L2.
  const ContentionCell cell{{KernelClass::kMemory, 100}, {{KernelClass::kMemory, 100}}, {}, false};
  EXPECT_NEAR(predicted_slowdown(cell, device()), 1.6 * 1.16, 1e-12);
  // A quarter of the SMs: D = 1, no saturation.
  const ContentionCell small{{KernelClass::kMemory, 100}, {{KernelClass::kMemory, 25}}, {}, false};
  EXPECT_NEAR(predicted_slowdown(small, device()), 1 + 0.2 * 0.2, 1e-12);
}

TEST(ContentionFit, ExactSlowdownsGiveTheParametersBack) {
  const ContentionFit fit = fit_contention(grid(other_device(), 0), device());
  EXPECT_LT(fit.fitted.worst, 1e-3);
  EXPECT_LT(fit.held_out.worst, 0.01);
  EXPECT_GT(fit.base.worst, 0.05);
  for (std::size_t i = 0; i < fit.parameters.size(); ++i) {
    const FittedParameter& found = fit.parameters[i];
    const double truth = other_device().contention.*contention_parameters()[i].value;
    if (found.kept.empty()) {
      EXPECT_NEAR(found.value, truth, 0.02) << found.key;
    }
  }
  EXPECT_GT(fit.condition, 1);
  EXPECT_LT(fit.condition, 1e4);
}

TEST(ContentionFit, ErrorsOfMeasurementsComeThroughNoLarger) {
  const ContentionFit fit = fit_contention(grid(other_device(), 0.02), device());
  // Each measurement is off by at most 2 %: so is, or nearly, each prediction.
  EXPECT_LT(fit.held_out.p90, 0.03);
  EXPECT_LT(fit.held_out.mean, 0.02);
  for (std::size_t i = 0; i < fit.parameters.size(); ++i) {
    const FittedParameter& found = fit.parameters[i];
    const double truth = other_device().contention.*contention_parameters()[i].value;
    if (found.kept.empty()) {
      EXPECT_NEAR(found.value, truth, std::max(0.1, 4 * found.error)) << found.key;
    }
  }
}

TEST(ContentionFit, TheBaseItselfStays) {
  const ContentionFit fit = fit_contention(grid(device(), 0), device());
  EXPECT_LT(fit.held_out.worst, 1e-6);
  for (const FittedParameter& parameter : fit.parameters) {
    EXPECT_NEAR(parameter.value, parameter.base, 1e-6) << parameter.key;
  }
}

TEST(ContentionFit, WhatAGridDoesNotShowKeepsTheBasesValueAndSaysSo) {
  // Compute kernels beside each other only: nothing is seen of the other classes.
  std::vector<ContentionCell> cells;
  for (const ContentionCell& cell : grid(other_device(), 0)) {
    bool only = cell.victim.kernel_class == KernelClass::kCompute;
    for (const Occupant& other : cell.others) {
      only = only && other.kernel_class == KernelClass::kCompute;
    }
    if (only) cells.push_back(cell);
  }
  const ContentionFit fit = fit_contention(cells, device());
  for (const FittedParameter& parameter : fit.parameters) {
    if (!parameter.key.starts_with("memory_") && !parameter.key.starts_with("unknown_")) continue;
    EXPECT_NE(parameter.kept, "") << parameter.key;
    EXPECT_EQ(parameter.value, parameter.base) << parameter.key;
  }
}

TEST(ContentionFit, NoCellsChangeNothing) {
  const ContentionFit fit = fit_contention({}, device());
  for (const FittedParameter& parameter : fit.parameters) {
    EXPECT_EQ(parameter.value, parameter.base) << parameter.key;
    EXPECT_NE(parameter.kept, "") << parameter.key;
  }
  EXPECT_EQ(fit.condition, 0);
}

// The solver of the fit of contention.

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
