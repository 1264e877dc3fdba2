// Memory of an inference instance.
#include "sim/synth/inference_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/synth/inference/requests.hpp"

namespace bubblesim::synth {
namespace {

using ::testing::HasSubstr;

TEST(InferenceMemory, HoldsWeightsAndTheWholeBatchesCache) {
  InferenceRequest llama = generation(512, 64);
  llama.batch = 4;
  const InstanceMemory memory = value(instance_memory(llama));
  EXPECT_DOUBLE_EQ(memory.weights, 2 * 6738415616.0);
  // Keys and values of 32 layers, 4,096 wide, 2 bytes: 512 KiB a token.
  EXPECT_DOUBLE_EQ(memory.kv_cache, 4.0 * (512 + 64) * 524288);
  EXPECT_GT(memory.activations, 4.0 * 512 * 4096 * 2);
  EXPECT_LT(memory.activations, 4.0 * 512 * 4096 * 2 * 20);
}

TEST(InferenceMemory, TiedEmbeddingsAreThereOnce) {
  InferenceRequest gpt = request("gpt2-large");
  gpt.shape = OnePass{128, model::AttentionKernels::kFlash};
  gpt.precision = model::Precision::kFp32;
  // 774,030,080 parameters (GPT-2's own table says 774M).
  EXPECT_DOUBLE_EQ(value(instance_memory(gpt)).weights, 4.0 * 774030080.0);
}

TEST(InferenceMemory, ADraftModelHasWeightsAndACacheOfItsOwn) {
  InferenceRequest alone = generation(512, 64);
  InferenceRequest with = alone;
  DraftSpeculation how;
  how.draft = request("llama-68m").model;
  how.tree = model::chain(4);
  how.acceptance = 0.7;
  with.shape = Generation{512, 64, DecodeMode::kEager, how};
  const InstanceMemory before = value(instance_memory(alone));
  const InstanceMemory after = value(instance_memory(with));
  EXPECT_GT(after.weights, before.weights + 2 * 60e6);
  EXPECT_LT(after.weights, before.weights + 2 * 75e6);
  // 4 drafted tokens in both caches; the draft's is 2 layers of 768: 6 KiB a token.
  EXPECT_DOUBLE_EQ(after.kv_cache, 580.0 * 524288 + 580.0 * 6144);
}

TEST(InferenceMemory, AnInstanceThatDoesNotFitNamesTheBatchThatDoes) {
  InferenceRequest llama = generation(2048, 64);
  llama.batch = 1000;
  EXPECT_FALSE(memory_that_fits(llama));
  const std::string fault = fault_of(llama);
  EXPECT_THAT(fault, HasSubstr("weights"));
  const std::size_t at = fault.find("a batch of ");
  ASSERT_NE(at, std::string::npos) << fault;
  llama.batch = static_cast<std::uint32_t>(std::stoul(fault.substr(at + 11)));
  EXPECT_TRUE(memory_that_fits(llama));
  ++llama.batch;
  EXPECT_FALSE(memory_that_fits(llama));
}

TEST(InferenceMemory, AModelThatNeverFitsSaysSo) {
  InferenceRequest large = request("gpt-175b");
  large.shape = Generation{8, 8, DecodeMode::kEager, {}};
  EXPECT_THAT(fault_of(large), HasSubstr("no batch fits"));
}

}  // namespace
}  // namespace bubblesim::synth
