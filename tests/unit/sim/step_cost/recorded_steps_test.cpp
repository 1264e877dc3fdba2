// Steps of an engine, and their file; conformance/python/test_steps.py has those of a trace.
#include "sim/step_cost/recorded_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/base/json.hpp"
#include "sim/step_cost/steps_file.hpp"

namespace bubblesim::step_cost {
namespace {

using testing::HasSubstr;

TEST(RecordedSteps, WithSumsThatNoSequencesHaveCannotBe) {
  EXPECT_FALSE(can_be({1, 512, 512, 512, 512})) << "one prompt of 512 has 512^2";
  EXPECT_FALSE(can_be({2, 8, 8, 31, 31})) << "two of 4 have 32";
  EXPECT_TRUE(can_be({2, 8, 8, 32, 32}));
  EXPECT_TRUE(can_be({2, 8, 8, 50, 50})) << "7 and 1";
  EXPECT_FALSE(can_be({2, 8, 8, 51, 51}));
}

Json sums_of(const StepSums& sums) {
  return {{"sequences", sums.sequences}, {"tokens", sums.tokens},     {"keys", sums.keys},
          {"squares", sums.squares},     {"products", sums.products}};
}

/// A file of this step, or of none.
CheckedResult<RecordedSteps> read_back(const std::vector<RecordedStep>& steps) {
  Json list = Json::array();
  for (const RecordedStep& step : steps) {
    list.push_back({{"prompts", sums_of(step.prompts)},
                    {"singles", sums_of(step.singles)},
                    {"kernels_us", step.kernels_us}});
  }
  const Json file{{"format", "bubblesim.steps/1"}, {"gpu", "NVIDIA H200"},
                  {"source", "rank0.json"}, {"steps", std::move(list)}};
  return parse_steps(file.dump(), "steps.json");
}

TEST(StepsFile, IsReadAsItIs) {
  const RecordedStep step{{2, 5, 10, 13, 28}, {1, 1, 10, 1, 10}, 812.25};
  const auto read = read_back({step});
  ASSERT_TRUE(read) << read.error().front().text();
  EXPECT_EQ(read->steps, std::vector{step});
  EXPECT_EQ(read->gpu, "NVIDIA H200");
  EXPECT_EQ(read->source, "rank0.json");
}

TEST(StepsFile, SaysWhatIsWrong) {
  const auto fault_of = [](const std::vector<RecordedStep>& steps) {
    return read_back(steps).error().front().text();
  };
  EXPECT_THAT(fault_of({}), HasSubstr("is empty"));
  EXPECT_THAT(fault_of({{{2, 5, 4, 13, 28}, {}, 1}}), HasSubstr("sums that no sequences have"));
  EXPECT_THAT(fault_of({{{0.4, 1, 1, 1, 1}, {}, 1}}), HasSubstr("sums that no sequences have"));
  EXPECT_THAT(fault_of({{{}, {}, 1}}), HasSubstr("has no tokens"));
  EXPECT_FALSE(parse_steps("{\"format\": \"bubblesim.layers/1\"}", "f"));
}

}  // namespace
}  // namespace bubblesim::step_cost
