// Steps as an engine's trace shows them, by hand.
#include "sim/step_cost/recorded_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/base/json.hpp"
#include "sim/step_cost/steps_file.hpp"

namespace bubblesim::step_cost {
namespace {

using testing::HasSubstr;

constexpr const char* kDecode =
    "execute_2_context_0(sq0sk0sqsq0sqsk0)_generation_2(sq2sk12sqsq2sqsk12)";
constexpr const char* kMixed = "execute_context_2(8)_generation_3(3)";

/// A thread that launches, a device that runs.
class Recording {
 public:
  void step(const char* name, std::int64_t start, std::int64_t end) {
    traces::Marker& marker = trace_.markers.emplace_back();
    marker.start = at(start);
    marker.duration = Duration{end - start};
    marker.name = trace_.names.intern(name);
  }
  /// Its index, for ops that it launches.
  std::uint32_t launch(std::int64_t start) {
    trace_.host_calls.emplace_back().start = at(start);
    return static_cast<std::uint32_t>(trace_.host_calls.size() - 1);
  }
  void op(std::uint32_t launch, std::int64_t start, std::int64_t end,
          traces::DeviceOpKind kind = traces::DeviceOpKind::kKernel) {
    traces::DeviceOp& made = trace_.device_ops.emplace_back();
    made.launch = launch;
    made.start = at(start);
    made.duration = Duration{end - start};
    made.kind = kind;
  }
  Result<RecordedSteps> read(std::optional<double> context = std::nullopt) {
    return recorded_steps(trace_, context);
  }

 private:
  static TraceTime at(std::int64_t ns) { return TraceTime{Duration{ns}}; }
  traces::RankTrace trace_;
};

TEST(StepNames, SayWhatAStepComputes) {
  // Prompts of 3 tokens behind 5 cached ones and of 2 alone; one that generates behind 9.
  const auto step = step_of_name("execute_6_context_2(sq5sk10sqsq13sqsk28)_generation_1"
                                 "(sq1sk10sqsq1sqsk10)", 0);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->prompts, (StepSums{2, 5, 10, 13, 28}));
  EXPECT_EQ(step->singles, (StepSums{1, 1, 10, 1, 10}));
}

TEST(StepNames, WithoutContextsAreFilledIn) {
  EXPECT_FALSE(tells_contexts(kMixed));
  EXPECT_TRUE(tells_contexts(kDecode));
  // Two prompts of 4; three tokens that attend to 7 each, themselves among them.
  const auto step = step_of_name(kMixed, 7);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->prompts, (StepSums{2, 8, 8, 32, 32}));
  EXPECT_EQ(step->singles, (StepSums{3, 3, 21, 3, 21}));
}

// Sums of equal sequences are whole only in the mean: rounding must not make them impossible.
TEST(StepNames, OfAnyNumbersOfPromptsCanBe) {
  for (int sequences = 1; sequences < 60; ++sequences) {
    for (int tokens = sequences; tokens < 900; tokens += 7) {
      const std::string name = "execute_context_" + std::to_string(sequences) + "(" +
                               std::to_string(tokens) + ")_generation_0(0)";
      EXPECT_TRUE(can_be(step_of_name(name, 1)->prompts)) << name;
    }
  }
}

TEST(StepNames, OfOthersAreNone) {
  for (const char* name : {"", "step[EXTEND bs=15 toks=15360]", "execute_context_1(2)",
                           "execute_context_1(2)_generation_", "aten::mm",
                           "execute_context_1(2)_generation_0(0)xyz",
                           "execute_context_1(99999999999999999999)_generation_0(0)"}) {
    EXPECT_FALSE(step_of_name(name, 1)) << name;
  }
}

TEST(StepNames, WithSumsThatNoSequencesHaveCannotBe) {
  EXPECT_FALSE(can_be(step_of_name("execute_context_0(512)_generation_8(8)", 9)->prompts));
  EXPECT_FALSE(can_be(step_of_name("execute_context_1(512)_generation_0(8)", 9)->singles));
  EXPECT_FALSE(can_be({1, 512, 512, 512, 512})) << "one prompt of 512 has 512^2";
  EXPECT_FALSE(can_be({2, 8, 8, 31, 31})) << "two of 4 have 32";
  EXPECT_TRUE(can_be({2, 8, 8, 32, 32}));
  EXPECT_TRUE(can_be({2, 8, 8, 50, 50})) << "7 and 1";
  EXPECT_FALSE(can_be({2, 8, 8, 51, 51}));
}

TEST(RecordedSteps, TakeTheKernelsThatTheirThreadLaunchedWhereverTheyRun) {
  Recording recording;
  recording.step(kDecode, 1000, 2000);
  recording.step(kDecode, 2000, 3000);
  const std::uint32_t first = recording.launch(1100), second = recording.launch(2100),
                      stray = recording.launch(3100);
  recording.op(first, 5000, 15'000);
  recording.op(second, 15'000, 18'000);
  recording.op(stray, 18'000, 19'000);
  recording.op(traces::kNone, 19'000, 20'000);
  const auto read = recording.read();
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ(read->steps.size(), 2U);
  EXPECT_DOUBLE_EQ(read->steps[0].kernels_us, 10);
  EXPECT_DOUBLE_EQ(read->steps[1].kernels_us, 3);
  EXPECT_EQ(read->counters.count("kernels_of_no_step"), 2U);
}

TEST(RecordedSteps, CountGapsBeforeWhatWasLaunchedAlreadyAndNoneThatTheHostMakes) {
  Recording recording;
  recording.step(kDecode, 0, 9000);
  const std::uint32_t graph = recording.launch(100), kernel = recording.launch(8500);
  recording.op(graph, 1000, 2000);
  recording.op(graph, 2500, 4000);  // 500 from one to the next
  recording.op(graph, 4000, 7000, traces::DeviceOpKind::kCollective);
  recording.op(graph, 7200, 8000);  // behind a collective: as it started
  recording.op(kernel, 9000, 10'000);  // launched when the device was idle
  recording.op(kernel, 9500, 11'000);  // 500 at the same time
  const auto read = recording.read();
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_DOUBLE_EQ(read->steps[0].kernels_us, 3 + 0.8 + 2);
}

TEST(RecordedSteps, AreToldByTheInnerOfTwoRanges) {
  Recording recording;
  recording.step(kDecode, 0, 1000);
  recording.step(kDecode, 200, 400);  // as a draft model's
  for (const std::int64_t at : {100, 300, 500}) {
    recording.op(recording.launch(at), at + 10, at + 60);
  }
  const auto read = recording.read();
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_DOUBLE_EQ(read->steps[0].kernels_us, 0.1);
  EXPECT_DOUBLE_EQ(read->steps[1].kernels_us, 0.05);
}

TEST(RecordedSteps, CountWhatTheyLeaveOut) {
  Recording recording;
  recording.step(kDecode, 0, 100);
  recording.step("execute_context_0(0)_generation_0(0)", 200, 300);
  recording.step(kMixed, 400, 500);
  recording.step("execute_0_context_3(sq2sk2sqsq2sqsk2)_generation_0(sq0sk0sqsq0sqsk0)", 600, 700);
  recording.op(recording.launch(50), 1000, 2000);
  const auto read = recording.read(5);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->steps.size(), 1U);
  EXPECT_EQ(read->counters.count("steps_without_tokens"), 1U);
  EXPECT_EQ(read->counters.count("steps_without_kernels"), 1U);
  EXPECT_EQ(read->counters.count("steps_with_impossible_sums"), 1U) << "3 sequences, 2 tokens";
  EXPECT_EQ(read->counters.count("contexts_assumed"), 1U);
}

TEST(RecordedSteps, RefuseTracesThatSayTooLittle) {
  Recording recording;
  EXPECT_THAT(recording.read().error().text(), HasSubstr("names no step of an engine"));
  recording.step(kMixed, 0, 100);
  EXPECT_THAT(recording.read().error().text(), HasSubstr("--context TOKENS"));
  EXPECT_THAT(recording.read(5).error().text(), HasSubstr("has no kernel of any step"));
  Recording impossible;
  impossible.step("execute_context_0(0)_generation_8(3)", 0, 100);
  impossible.step("execute_context_0(512)_generation_8(8)", 100, 200);
  EXPECT_THAT(impossible.read().error().text(),
              HasSubstr("has no step but 2 with sums that no sequences have, as "
                        "\"execute_context_0(512)_generation_8(8)\""));
}

TEST(StepsFile, ReadsBackWhatWasWritten) {
  RecordedSteps steps;
  steps.gpu = "NVIDIA H200";
  steps.source = "rank0.json";
  steps.steps = {{{2, 5, 10, 13, 28}, {1, 1, 10, 1, 10}, 812.25}};
  const auto read = parse_steps(steps_json(steps).dump(), "steps.json");
  ASSERT_TRUE(read) << read.error().front().text();
  EXPECT_EQ(read->steps, steps.steps);
  EXPECT_EQ(read->gpu, steps.gpu);
  EXPECT_EQ(read->source, steps.source);
}

TEST(StepsFile, SaysWhatIsWrong) {
  RecordedSteps steps;
  EXPECT_THAT(parse_steps(steps_json(steps).dump(), "f").error().front().text(),
              HasSubstr("is empty"));
  steps.steps = {{{2, 5, 4, 13, 28}, {}, 1}};
  EXPECT_THAT(parse_steps(steps_json(steps).dump(), "f").error().front().text(),
              HasSubstr("sums that no sequences have"));
  steps.steps = {{{0.4, 1, 1, 1, 1}, {}, 1}};
  EXPECT_THAT(parse_steps(steps_json(steps).dump(), "f").error().front().text(),
              HasSubstr("sums that no sequences have"));
  steps.steps = {{{}, {}, 1}};
  EXPECT_THAT(parse_steps(steps_json(steps).dump(), "f").error().front().text(),
              HasSubstr("has no tokens"));
  EXPECT_FALSE(parse_steps("{\"format\": \"bubblesim.layers/1\"}", "f"));
}

}  // namespace
}  // namespace bubblesim::step_cost
