// Iterations of a continuously batched model as threads of one program.
#include "sim/synth/iteration_program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/synth/inference/requests.hpp"

namespace bubblesim::synth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

InferenceRequest server(std::uint32_t most) {
  InferenceRequest out = generation(100, 300, DecodeMode::kGraph);
  out.batch = most;
  return out;
}

TEST(IterationProgram, HasAThreadForEachBucket) {
  const auto made = value(iteration_program(server(6)));
  EXPECT_THAT(made.table.prompt_tokens, ElementsAre(16, 32, 64, 128, 256, 512, 600));
  EXPECT_THAT(made.table.sequences, ElementsAre(1, 2, 4, 6));
  EXPECT_EQ(made.table.contexts, 2U);  // 400 tokens: 0 to 255, 256 to 511
  EXPECT_EQ(made.program.threads.size(), 7U + 4 * 2);
  EXPECT_EQ(made.program.threads.size(), made.table.threads());
  EXPECT_EQ(made.program.threads[7].name, "decode 1 at 128");
}

TEST(IterationProgram, AStepOfAGraphIsOneCall) {
  const auto made = value(iteration_program(server(6)));
  const program::ThreadProgram& step = made.program.threads.back();
  ASSERT_EQ(step.steps.size(), 3U);  // launch, wait, end
  EXPECT_EQ(step.steps[0].kind, program::StepKind::kLaunch);
  EXPECT_EQ(step.steps[1].kind, program::StepKind::kWaitOp);
}

TEST(IterationProgram, TheCacheLimitsHowManyTokensAreHeld) {
  // 512 KiB a token; 400 tokens a request.
  EXPECT_EQ(value(iteration_program(server(6))).table.cache_tokens, 6U * 400);
  EXPECT_EQ(value(iteration_program(server(6), 524288.0 * 1000)).table.cache_tokens, 1000U);
  const auto none = iteration_program(server(6), 524288.0 * 399);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().text(),
              HasSubstr("a KV cache of 399 tokens; expected at least the 400"));
}

TEST(IterationProgram, OnePassAndSpeculationAreRefused) {
  EXPECT_FALSE(iteration_program(request("bert-base")));
}

}  // namespace
}  // namespace bubblesim::synth
