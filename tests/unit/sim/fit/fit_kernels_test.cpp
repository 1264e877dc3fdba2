#include "sim/fit/fit_kernels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

#include "sim/fit/least_squares.hpp"
#include "sim/fit/table_readers.hpp"
#include "sim/fit/table_text.hpp"
#include "sim/model/kernel_time.hpp"

namespace bubblesim::fit {
namespace {

using model::Efficiency;
using model::KernelKind;
using model::Precision;

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

TEST(TrioSim, a_time_that_is_missing_is_counted_and_moves_no_other_layer) {
  const auto read = [](int convolutions) -> CheckedResult<KernelMeasurements> {
    std::string text = "OperatorName,Operator_cudatime\naten::relu_,7\n";
    for (int i = 0; i < convolutions; ++i) text += i == 1 ? "aten::conv2d,\n" : "aten::conv2d,5\n";
    const std::string path = testing::TempDir() + "vgg13.csv";
    std::ofstream(path) << text;
    KernelMeasurements out;
    BUBBLESIM_RETURN_IF_ERROR(read_triosim_vgg13({path, "h100", "triosim vgg13"}, out));
    return out;
  };
  const auto all = read(10);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->rows.size(), 9U);
  EXPECT_EQ(all->rows[1].work.gemm.n, 128U);  // the third layer's channels
  EXPECT_EQ(all->rows[1].role, validate::RowRole::kFit);
  EXPECT_EQ(all->counters.count(kKernelRowsUnread.name), 1U);
  for (const int convolutions : {9, 11}) {
    const auto wrong = read(convolutions);
    ASSERT_FALSE(wrong);
    EXPECT_THAT(wrong.error().front().message, testing::HasSubstr("expected VGG13's 10"));
  }
}

TEST(TableText, shapes_are_lists_of_numbers_in_brackets) {
  EXPECT_EQ(shapes_of("[[16, 512], [1]]"), (std::vector<std::vector<double>>{{16, 512}, {1}}));
}

hardware::GpuSpec gpu() {
  hardware::GpuSpec out;
  out.compute_major = 8;
  out.sm_count = 108;
  out.sm.shared_memory_bytes = 164 * 1024;
  out.dram_bandwidth = BytesPerSecond{2e12};
  return out;
}

// Rows made with a known share of bandwidth: the fit must give it back.
TEST(FitKernels, gives_back_the_constants_that_made_the_rows) {
  Efficiency truth;
  truth.peak_flops = {2e13, 1.5e14, 3e14, 3e14, 0};
  auto& stream = truth.streams[index_of(KernelKind::kSoftmax)];
  stream = {3e-6, 0.7};
  KernelMeasurements measured;
  for (int i = 1; i <= 200; ++i) {
    const double elements = 1e6 * i;
    KernelMeasurement row;
    row.work = stream_work("softmax", KernelKind::kSoftmax, Precision::kFp16, elements,
                           4 * elements);
    row.measured = model::time_kernel(row.work, gpu(), truth).duration;
    row.device = "toy";
    row.source = "made";
    row.role = i % 2 == 0 ? validate::RowRole::kFit : validate::RowRole::kJudge;
    measured.rows.push_back(row);
  }
  Efficiency start = truth;
  start.streams[index_of(KernelKind::kSoftmax)] = {1e-6, 0.3};
  const auto fit = fit_kernels(measured, {{"toy", gpu()}}, start);
  ASSERT_TRUE(fit);
  const auto& found = fit->efficiency.streams[index_of(KernelKind::kSoftmax)];
  EXPECT_NEAR(found.dram_share, 0.7, 0.005);
  EXPECT_NEAR(found.fixed_s, 3e-6, 0.1e-6);
  ASSERT_EQ(fit->errors.size(), 2U);
  EXPECT_EQ(fit->errors[1].role, validate::RowRole::kJudge);
  EXPECT_LT(fit->errors[1].all.mean_absolute, 0.005);
}

TEST(FitKernels, a_row_of_an_unknown_device_is_refused) {
  KernelMeasurements measured;
  measured.rows.resize(1);
  measured.rows[0].device = "abacus";
  const auto fit = fit_kernels(measured, {}, Efficiency{});
  ASSERT_FALSE(fit);
  EXPECT_NE(fit.error().text().find("abacus"), std::string::npos);
}

TEST(KernelMeasurements, an_unknown_family_is_refused_with_those_known) {
  const auto measured = read_measured_kernels("/nowhere", "b200");
  ASSERT_FALSE(measured);
  EXPECT_NE(measured.error()[0].text().find("h100"), std::string::npos);
}

}  // namespace
}  // namespace bubblesim::fit
