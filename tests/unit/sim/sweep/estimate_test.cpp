// What a dry run measures: some runs of the plan, and what of them the whole plan repeats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/builtin.hpp"
#include "sim/sweep/estimate.hpp"
#include "tests/unit/sim/sweep/sweep_case.hpp"

namespace bubblesim::sweep {
namespace {

using testing::HasSubstr;

RunCost cost_of(const std::string& axes, Duration budget) {
  const Folder folder;
  const auto plan = plan_of(folder, axes);
  if (!plan) {
    ADD_FAILURE() << texts(plan.error());
    return {};
  }
  return measure_runs(plan->runs, policies::builtin_policies(), options(1), budget);
}

TEST(MeasureRuns, MeasuresEightOfManyAndOneWithoutTime) {
  const std::string axes =
      R"([{"pointer": "/policies/0", "values": ["exclusive", "ideal", "specinf"]},
          {"pointer": "/fillers/batch/max_batch", "values": [1, 2, 3, 4]}])";
  const RunCost much = cost_of(axes, std::chrono::hours{1});
  EXPECT_EQ(much.runs, 8U);
  EXPECT_GT(much.run, Duration{});
  EXPECT_EQ(much.failure, "");
  const RunCost little = cost_of(axes, Duration{});
  EXPECT_EQ(little.runs, 1U);
  EXPECT_GT(little.run, Duration{});
}

TEST(MeasureRuns, SaysWhyARunFails) {
  const RunCost cost =
      cost_of(R"([{"pointer": "/fillers/batch/gpus", "values": [[7]]}])", std::chrono::hours{1});
  EXPECT_EQ(cost.runs, 1U);
  EXPECT_THAT(cost.failure, HasSubstr("found GPU 7"));
}

}  // namespace
}  // namespace bubblesim::sweep
