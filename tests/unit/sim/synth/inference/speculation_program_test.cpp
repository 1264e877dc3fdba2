// Speculative decoding as a program: rounds, and what they yield.
#include <gtest/gtest.h>

#include "sim/synth/inference_program.hpp"
#include "tests/unit/sim/synth/inference/requests.hpp"

namespace bubblesim::synth {
namespace {

InferenceRequest speculating(std::uint64_t output, double acceptance, model::TokenTree tree,
                             DecodeMode decode = DecodeMode::kEager) {
  InferenceRequest out = request("llama2-7b");
  DraftSpeculation how;
  how.draft = request("llama-68m").model;
  how.tree = std::move(tree);
  how.acceptance = acceptance;
  out.shape = Generation{32, output, decode, std::move(how)};
  return out;
}

std::uint64_t rounds(std::uint64_t output, double acceptance, model::TokenTree tree) {
  return program_of(speculating(output, acceptance, std::move(tree))).steps - 1;
}

TEST(SpeculationProgram, ADraftThatIsNeverRightYieldsATokenARound) {
  EXPECT_EQ(rounds(9, 0.0, model::chain(4)), 8U);
}

TEST(SpeculationProgram, ADraftThatIsAlwaysRightYieldsItsDepthAndOneMore) {
  EXPECT_EQ(rounds(11, 1.0, model::chain(4)), 2U);  // 1 + 5 + 5
  EXPECT_EQ(rounds(12, 1.0, model::chain(4)), 3U);
}

TEST(SpeculationProgram, FractionsOfATokenAreCarried) {
  // A chain of 1 at 0.5: 1.5 tokens a round; after rounds 1, 2, 3, 4: 1, 3, 4, 6.
  EXPECT_EQ(rounds(2, 0.5, model::chain(1)), 1U);
  EXPECT_EQ(rounds(3, 0.5, model::chain(1)), 2U);
  EXPECT_EQ(rounds(4, 0.5, model::chain(1)), 2U);
  EXPECT_EQ(rounds(5, 0.5, model::chain(1)), 3U);
  EXPECT_EQ(rounds(7, 0.5, model::chain(1)), 4U);
}

TEST(SpeculationProgram, AWiderTreeTakesFewerRounds) {
  // {1,1,3}: 1 + .5 + .25 + .25 x .875 = 1.97 tokens; {1,1,1}: 1.875. For 300: 152 and 160.
  EXPECT_EQ(rounds(301, 0.5, {{1, 1, 3}}), 153U);
  EXPECT_EQ(rounds(301, 0.5, model::chain(3)), 160U);
}

TEST(SpeculationProgram, AGraphIsOneCallADraftStepAndOneToCheck) {
  const auto eager = program_of(speculating(9, 0.0, model::chain(4)));
  const auto graph = program_of(speculating(9, 0.0, model::chain(4), DecodeMode::kGraph));
  EXPECT_EQ(graph.program.ops.size(), eager.program.ops.size());
  const auto two = program_of(speculating(1, 0.0, model::chain(4)));  // the prompt alone
  EXPECT_EQ(calls(graph.program, program::StepKind::kLaunch),
            calls(two.program, program::StepKind::kLaunch) + 8 * 5);
}

TEST(SpeculationProgram, AGoodDraftMakesWeightBoundDecodingFaster) {
  InferenceRequest plain = generation(32, 33, DecodeMode::kGraph);
  const Duration with = time_of(speculating(33, 0.8, model::chain(4), DecodeMode::kGraph));
  EXPECT_LT(with, time_of(plain));
}

}  // namespace
}  // namespace bubblesim::synth
