// A fit finds the constants that made its rows.
#include "sim/fit/fit_training.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/folders.hpp"

namespace bubblesim::fit {
namespace {

using validate::Testbed;
using validate::TrainingRow;

const Testbed& machine() {
  static const Testbed found = [] {
    auto made = validate::find_machine(kConfigFolder, "dgx-a100-80gb", "pytorch");
    EXPECT_TRUE(made) << made.error().front().text();
    Testbed out = made ? *std::move(made) : Testbed{};
    out.software.compute_wait = synth::ComputeWait::kNone;
    out.software.iteration = std::chrono::milliseconds(2);
    out.software.slowdown = {};
    return out;
  }();
  return found;
}

// One GPU and two layers: the host's cost of an iteration counts in the smallest, products in the
// largest.
TrainingRow job(std::uint64_t hidden, std::uint64_t sequence) {
  TrainingRow row;
  row.role = validate::RowRole::kFit;
  row.hidden = hidden;
  row.layers = 2;
  row.heads = 8;
  row.vocabulary = 1024;
  row.sequence = sequence;
  row.gpus = 1;
  row.plan.global_batch = 1;
  row.plan.sequence = sequence;
  return row;
}

std::vector<FitSample> samples_made_with(const synth::SoftwareSpec& software) {
  Testbed true_one = machine();
  true_one.software = software;
  std::vector<FitSample> out;
  for (TrainingRow row : {job(512, 128), job(1024, 512), job(4096, 2048), job(8192, 2048)}) {
    const auto predicted = validate::predict(row, true_one);
    EXPECT_TRUE(predicted) << predicted.error().text();
    row.seconds = predicted ? predicted->seconds : 1;
    out.push_back({row, &machine()});
  }
  return out;
}

synth::SoftwareSpec true_software() {
  synth::SoftwareSpec out = machine().software;
  out.iteration = std::chrono::milliseconds(5);
  out.slowdown.gemm = 1.3;
  return out;
}

Result<TrainingFit> fitted(std::size_t threads) {
  return fit_training(samples_made_with(true_software()), machine().software,
                      {"iteration", "slowdown/gemm"}, nullptr, threads);
}

TEST(FitTraining, FindsTheConstantsThatMadeTheRows) {
  const auto fit = fitted(1);
  ASSERT_TRUE(fit) << fit.error().text();
  ASSERT_EQ(fit->constants.size(), 2U);
  EXPECT_NEAR(fit->constants[0].value, 5e3, 0.02 * 5e3);
  EXPECT_NEAR(fit->constants[1].value, 1.3, 0.02 * 1.3);
  EXPECT_LT(fit->mean_error_after, 0.01);
  EXPECT_GT(fit->mean_error_before, fit->mean_error_after);
}

TEST(FitTraining, IsTheSameOnAnyNumberOfThreads) {
  const auto one = fitted(1), three = fitted(3);
  ASSERT_TRUE(one && three);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(one->constants[i].value, three->constants[i].value);
  }
}

TEST(FitTraining, FaultsAreNamed) {
  const synth::SoftwareSpec start = true_software();
  EXPECT_THAT(fit_training({}, start, {}, nullptr).error().text(), testing::HasSubstr("role"));
  const auto fit = fit_training(samples_made_with(start), start, {"iterations"}, nullptr);
  EXPECT_THAT(fit.error().text(), testing::HasSubstr("iteration"));
}

TEST(FitTraining, AFittedFileKeepsWhatIsNotFitted) {
  const auto text = fitted_text(kConfigFolder + "/software/pytorch.json",
                                {{"iteration", "us", 1, 5123.4, "fitted: so"},
                                 {"slowdown/gemm", "times", 1, 1.23456, "fitted: so"}});
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_THAT(*text, testing::HasSubstr("\"value\": \"5123us\",\n    \"source\": \"fitted: so\""));
  EXPECT_THAT(*text, testing::HasSubstr("1.235"));
  EXPECT_THAT(*text, testing::HasSubstr("\"launch_call\""));
}

}  // namespace
}  // namespace bubblesim::fit
