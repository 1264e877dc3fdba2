// Requests as programs: what is launched, and who is waited for.
#include <gmock/gmock.h>

#include "sim/model/inference_work.hpp"
#include "sim/synth/inference_program.hpp"
#include "sim/synth/inference_request.hpp"
#include "tests/unit/sim/synth/inference/requests.hpp"

namespace bubblesim::synth {
namespace {

using ::testing::HasSubstr;
using program::StepKind;

constexpr double kSecond = 1e9;

double nanoseconds(Duration span) { return static_cast<double>(span.count()); }

std::uint64_t kernels_of(const model::ModelWork& work) {
  std::uint64_t kernels = 0;
  for (const std::uint32_t kind : work.layers) kernels += work.kinds[kind].forward.size();
  return kernels;
}

TEST(InferenceProgram, APassIsTwoCopiesAndEveryKernel) {
  InferenceRequest bert = request("bert-base");
  bert.batch = 4;
  bert.shape = OnePass{128, model::AttentionKernels::kFlash};
  const InferenceProgram made = program_of(bert);
  const auto work = must(model::forward_work(bert.model, {}, bert.precision, 4, 128,
                                             model::AttentionKernels::kFlash));
  EXPECT_EQ(made.kernels, kernels_of(work));
  EXPECT_EQ(made.program.ops.size(), made.kernels + 2);
  EXPECT_EQ(calls(made.program, StepKind::kLaunch), made.kernels + 2);
  EXPECT_EQ(calls(made.program, StepKind::kWaitOp), 1U);
  EXPECT_EQ(made.program.own_kernels, program::OwnKernels::kCompete);
  EXPECT_EQ(made.program.iterations, 1U);
}

TEST(InferenceProgram, CopiesTakeTheTimeOfTheirBytes) {
  InferenceRequest images = request("resnet152");
  images.batch = 8;
  const InferenceProgram made = program_of(images);
  // 8 images of 3 x 224 x 224 in 4 bytes: 4,816,896 B at 25 GB/s is 192.676 us; and 1.5 us.
  EXPECT_EQ(made.program.ops.front().kind, program::WorkKind::kCopy);
  EXPECT_EQ(made.program.ops.front().duration, Duration{192'676 + 1'500});
  EXPECT_EQ(copy_time(0), Duration{1'500});
}

TEST(InferenceProgram, ASmallBatchTakesWhatItsLaunchesCostTheHost) {
  InferenceRequest bert = request("bert-base", Duration{100'000});
  bert.shape = OnePass{16, model::AttentionKernels::kFlash};
  const double launches = static_cast<double>(program_of(bert).program.ops.size());
  // 100 us each, against kernels of a few us: the device waits for every launch. At the end the
  // last one still has to run and to be noticed: within one launch's cost.
  const double host = launches * 100'000;
  EXPECT_GE(nanoseconds(time_of(bert)), host);
  EXPECT_LT(nanoseconds(time_of(bert)), host + 100'000);
}

TEST(InferenceProgram, ALargeBatchTakesWhatItsKernelsTake) {
  InferenceRequest bert = request("bert-base", Duration{2'000});
  bert.batch = 256;
  bert.shape = OnePass{512, model::AttentionKernels::kFlash};
  const InferenceProgram made = program_of(bert);
  const double device = nanoseconds(device_time(made.program));
  const double gaps = nanoseconds(bert.gpu.stream_gap) * static_cast<double>(made.kernels + 1);
  EXPECT_GE(nanoseconds(time_of(bert)), device);
  EXPECT_LT(nanoseconds(time_of(bert)), device + gaps + 50'000);
}

/// Of 64 tokens.
std::uint64_t kernels_of_prompt() {
  return kernels_of(must(model::prefill_work(generation(64, 5).model, {}, model::Precision::kFp16,
                                             1, 64)));
}

TEST(InferenceProgram, ThePromptYieldsTheFirstTokenAndEachStepOneMore) {
  const InferenceProgram made = program_of(generation(64, 5));
  EXPECT_EQ(made.steps, 5U);
  EXPECT_EQ(calls(made.program, StepKind::kWaitOp), 5U);
  const auto step = must(model::decode_work(generation(64, 5).model, {},
                                            model::Precision::kFp16, 1, 64));
  EXPECT_EQ(made.kernels, kernels_of_prompt() + 4 * kernels_of(step));
  EXPECT_EQ(calls(made.program, StepKind::kLaunch), made.kernels + 6);  // and 1 + 5 copies
}

TEST(InferenceProgram, AGraphIsOneCallAStep) {
  const InferenceProgram eager = program_of(generation(64, 5));
  const InferenceProgram graph = program_of(generation(64, 5, DecodeMode::kGraph));
  EXPECT_EQ(graph.program.ops.size(), eager.program.ops.size());
  EXPECT_EQ(device_time(graph.program), device_time(eager.program));
  // The request's copy, the prompt's kernels and its token's copy; then one call for each step.
  EXPECT_EQ(calls(graph.program, StepKind::kLaunch), 1 + kernels_of_prompt() + 1 + 4);
}

TEST(InferenceProgram, EagerDecodingIsBoundByLaunchesAndAGraphByWeights) {
  InferenceRequest eager = generation(1, 9);
  eager.software.forward_gap = Duration{99'000};
  InferenceRequest graph = eager;
  graph.shape = Generation{1, 9, DecodeMode::kGraph, {}};
  const InferenceProgram made = program_of(graph);
  const double steps = nanoseconds(time_of(graph));
  EXPECT_GT(nanoseconds(time_of(eager)), 2.0 * steps);
  // 8 steps read 6.6e9 weights of 2 bytes each: at no more than DRAM bandwidth.
  const double weights = 2.0 * (6738415616.0 - 32000.0 * 4096);
  EXPECT_GT(steps, 8 * weights / graph.gpu.dram_bandwidth.value * kSecond);
}

TEST(InferenceProgram, LaterStepsReadALongerCache) {
  const InferenceProgram made = program_of(generation(1000, 101));
  const auto of_name = [&](std::size_t from, std::size_t to) {
    Duration total{};
    for (std::size_t i = from; i < to; ++i) {
      const program::Op& op = made.program.ops[i];
      if (made.program.names[op.name] == "decode attention") total += op.duration;
    }
    return total;
  };
  const std::size_t half = made.program.ops.size() / 2;
  EXPECT_LT(of_name(0, half), of_name(half, made.program.ops.size()));
}

TEST(InferenceProgram, StepsShareTheProfilesOfLikeKernels) {
  const std::size_t few = program_of(generation(64, 3)).program.profiles.size();
  const std::size_t many = program_of(generation(64, 43)).program.profiles.size();
  // Attention alone changes from step to step.
  EXPECT_LE(many, few + 40);
}

TEST(InferenceProgram, AServersOwnHostTimeComesBeforeEachStep) {
  InferenceRequest with = generation(8, 4, DecodeMode::kGraph);
  with.step_host = Duration{1'000'000};
  const Duration more = time_of(with) - time_of(generation(8, 4, DecodeMode::kGraph));
  EXPECT_GT(more, Duration{3'000'000});
  EXPECT_LE(more, Duration{4'000'000});
}

TEST(InferenceProgram, RequestsThatCannotBeAreRefused) {
  EXPECT_THAT(fault_of(generation(0, 5)), HasSubstr("a prompt of 0 tokens"));
  EXPECT_THAT(fault_of(generation(5, 0)), HasSubstr("an output of 0 tokens"));
  InferenceRequest none = generation(5, 5);
  none.batch = 0;
  EXPECT_THAT(fault_of(none), HasSubstr("a batch of 0 requests"));
  InferenceRequest encoder = request("bert-base");
  encoder.shape = Generation{8, 8, DecodeMode::kEager, {}};
  EXPECT_THAT(fault_of(encoder), HasSubstr("no decoder"));
  InferenceRequest image = request("vgg19");
  image.shape = Generation{8, 8, DecodeMode::kEager, {}};
  EXPECT_THAT(fault_of(image), HasSubstr("no transformer"));
}

TEST(InferenceTrace, HasABatchAnIterationAndTheInstancesMemory) {
  InferenceRequest bert = request("bert-base");
  bert.shape = OnePass{16, model::AttentionKernels::kFlash};
  const auto trace = must(inference_trace(bert, 3));
  ASSERT_EQ(trace.ranks.size(), 1U);
  const InferenceProgram made = program_of(bert);
  EXPECT_EQ(trace.ranks.front().device_ops.size(), 3 * made.program.ops.size());
  ASSERT_FALSE(trace.ranks.front().memory.empty());
  EXPECT_EQ(trace.ranks.front().memory.front().allocated_bytes,
            static_cast<std::uint64_t>(made.memory.total()));
}

// Memory of an inference instance.

/// LLaMA2-7B with drafts of a small model.
InferenceRequest speculating(std::uint64_t prompt, std::uint64_t output, double acceptance,
                             model::TokenTree tree, DecodeMode decode = DecodeMode::kEager) {
  InferenceRequest out = request("llama2-7b");
  DraftSpeculation how;
  how.draft = request("llama-68m").model;
  how.tree = std::move(tree);
  how.acceptance = acceptance;
  out.shape = Generation{prompt, output, decode, std::move(how)};
  return out;
}

TEST(InferenceMemory, HoldsWeightsAndTheWholeBatchesCache) {
  InferenceRequest llama = generation(512, 64);
  llama.batch = 4;
  const InstanceMemory memory = must(instance_memory(llama));
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
  EXPECT_DOUBLE_EQ(must(instance_memory(gpt)).weights, 4.0 * 774030080.0);
}

TEST(InferenceMemory, ADraftModelHasWeightsAndACacheOfItsOwn) {
  const InstanceMemory before = must(instance_memory(generation(512, 64)));
  const InstanceMemory after = must(instance_memory(speculating(512, 64, 0.7, model::chain(4))));
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

// Speculative decoding as a program: rounds, and what they yield.

TEST(SpeculationProgram, RoundsFollowWhatTheDraftsYield) {
  struct Rounds {
    std::uint64_t output;  ///< with the prompt's token
    double acceptance;
    model::TokenTree tree;
    std::uint64_t rounds;
  };
  for (const auto& [output, acceptance, tree, rounds] : {
           // A draft that is never right yields a token a round, one that is always right its depth
           // and one more: 1 + 5 + 5.
           Rounds{9, 0.0, model::chain(4), 8}, {11, 1.0, model::chain(4), 2},
           {12, 1.0, model::chain(4), 3},
           // A chain of 1 at 0.5: 1.5 tokens a round; after rounds 1, 2, 3, 4: 1, 3, 4, 6.
           {2, 0.5, model::chain(1), 1}, {3, 0.5, model::chain(1), 2}, {4, 0.5, model::chain(1), 2},
           {5, 0.5, model::chain(1), 3}, {7, 0.5, model::chain(1), 4},
           // {1,1,3}: 1 + .5 + .25 + .25 x .875 = 1.97 tokens; {1,1,1}: 1.875. For 300: 152, 160.
           {301, 0.5, {{1, 1, 3}}, 153}, {301, 0.5, model::chain(3), 160}}) {
    EXPECT_EQ(program_of(speculating(32, output, acceptance, tree)).steps - 1, rounds)
        << output << " tokens, drafts right with " << acceptance;
  }
}

TEST(SpeculationProgram, AGraphIsOneCallADraftStepAndOneToCheck) {
  const auto eager = program_of(speculating(32, 9, 0.0, model::chain(4)));
  const auto graph = program_of(speculating(32, 9, 0.0, model::chain(4), DecodeMode::kGraph));
  EXPECT_EQ(graph.program.ops.size(), eager.program.ops.size());
  const auto two = program_of(speculating(32, 1, 0.0, model::chain(4)));  // the prompt alone
  EXPECT_EQ(calls(graph.program, program::StepKind::kLaunch),
            calls(two.program, program::StepKind::kLaunch) + 8 * 5);
}

TEST(SpeculationProgram, AGoodDraftMakesWeightBoundDecodingFaster) {
  InferenceRequest plain = generation(32, 33, DecodeMode::kGraph);
  EXPECT_LT(time_of(speculating(32, 33, 0.8, model::chain(4), DecodeMode::kGraph)), time_of(plain));
}

}  // namespace
}  // namespace bubblesim::synth
