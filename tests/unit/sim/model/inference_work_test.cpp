// Inference: prompts, single tokens, mixed batches, token trees.
#include <gmock/gmock.h>

#include <algorithm>

#include "sim/model/inference_work.hpp"
#include "sim/model/training_work.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/model/work_testing.hpp"

namespace bubblesim::model {
namespace {

using ::testing::Contains, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;
using ::testing::Not, ::testing::SizeIs;

const ModelSpec& llama() {
  static const ModelSpec spec = shipped("llama2-7b");
  return spec;
}

LayerWork block(const ModelWork& work) { return layer_of(work, "block"); }

TEST(InferenceWork, ADecodeStepReadsWeightsAndTheCache) {
  const ModelWork work = must(decode_work(llama(), {}, Precision::kFp16, 8, 1023));
  double bytes = 0;
  for (const std::uint32_t kind : work.layers) {
    for (const WorkItem& item : work.kinds[kind].forward) {
      const auto& kernel = std::get<KernelWork>(item);
      if (kernel.kind == KernelKind::kGemm || kernel.kind == KernelKind::kAttention) {
        bytes += kernel.bytes;
      }
    }
  }
  // 6.607e9 weights of products in 2 bytes; 8 x 1024 tokens of 2 x 32 x 4096 x 2 bytes.
  const double weights = 2.0 * (6738415616.0 - 32000.0 * 4096);
  const double cache = must(kv_cache_bytes(llama(), {}, Precision::kFp16, 8.0 * 1024));
  EXPECT_DOUBLE_EQ(cache, 8.0 * 1024 * 2 * 32 * 4096 * 2);
  EXPECT_NEAR(bytes / (weights + cache), 1.0, 0.01);
}

TEST(InferenceWork, ADecodeStepTakesTwoFlopsAParameterAndToken) {
  const ModelWork work = must(decode_work(llama(), {}, Precision::kFp16, 8, 0));
  double flops = 0;
  for (const std::uint32_t kind : work.layers) flops += product_flops(work.kinds[kind].forward);
  EXPECT_NEAR(flops / (2.0 * 8 * (6738415616.0 - 32000.0 * 4096)), 1.0, 0.001);
}

TEST(InferenceWork, APromptsAttentionSeesCachedTokensAndEarlierOnes) {
  const ModelWork work = must(prefill_work(llama(), {}, Precision::kFp16, 2, 100, 50));
  const KernelWork attention = kernel(block(work).forward, "prompt attention");
  // Pairs of a sequence: 100 x 50 + 100 x 101 / 2 = 10,050; 4 x 32 heads x 128 each.
  EXPECT_DOUBLE_EQ(attention.flops, 4.0 * 2 * 10050 * 4096);
  EXPECT_DOUBLE_EQ(attention.bytes, 2.0 * (2 * 200 * 4096 + 2 * 300 * 4096));
}

TEST(InferenceWork, AMixedBatchHasOneKernelForPromptsAndOneForSingleTokens) {
  const ModelWork work =
      must(iteration_work(llama(), {}, Precision::kFp16, {{256, 0}, {1, 700}, {1, 300}}));
  const LayerWork layer = block(work);
  EXPECT_EQ(kernel(layer.forward, "qkv gemm").gemm.m, 258U);
  EXPECT_DOUBLE_EQ(kernel(layer.forward, "decode attention").flops, 4.0 * (701 + 301) * 4096);
  EXPECT_DOUBLE_EQ(kernel(layer.forward, "prompt attention").flops, 4.0 * 256 * 257 / 2 * 4096);
  EXPECT_EQ(kernel(layer_of(work, "head").forward, "logits gemm").gemm.m, 3U);
  EXPECT_THAT(layer.input_grad, IsEmpty());
}

TEST(InferenceWork, TensorRanksHoldTheirHeadsCacheAndReduceTwiceABlock) {
  Split split;
  split.tensor = 4;
  const ModelWork work = must(decode_work(llama(), split, Precision::kFp16, 8, 100));
  ASSERT_THAT(exchanges(block(work).forward), SizeIs(2));
  EXPECT_DOUBLE_EQ(exchanges(block(work).forward).front().bytes, 8.0 * 4096 * 2);
  EXPECT_DOUBLE_EQ(must(kv_cache_bytes(llama(), split, Precision::kFp16, 1)), 2.0 * 32 * 1024 * 2);
}

TEST(InferenceWork, SharedKeysShrinkTheCache) {
  // Llama 3 405B: 2 x 126 layers x 8 heads x 128 x 2 bytes.
  EXPECT_DOUBLE_EQ(must(kv_cache_bytes(shipped("llama3-405b"), {}, Precision::kBf16, 1)),
                   2.0 * 126 * 8 * 128 * 2);
}

TEST(InferenceWork, AnEncodersRequestHasNoDropout) {
  const ModelWork work = must(forward_work(shipped("bert-base"), {}, Precision::kFp16, 4, 128,
                                           AttentionKernels::kFlash));
  EXPECT_THAT(names(block(work).forward), Not(Contains("attention dropout")));
  EXPECT_THAT(names(block(work).forward), Contains("bias add"));
  EXPECT_THAT(block(work).input_grad, IsEmpty());
  EXPECT_DOUBLE_EQ(product_flops(block(work).forward), 4.0 * 128 * 768 * (24 * 768 + 4 * 128));
}

TEST(InferenceWork, SumsOfABatchGiveTheKernelsOfTheBatch) {
  const std::vector<SequenceState> batch{{1, 700}, {1, 31}, {300, 512}};
  IterationSums sums;
  sums.prompts.add(batch[2]);
  for (const int single : {0, 1}) sums.singles.add(batch[single]);
  sums.tokens = 302;
  sums.rows = 3;
  const ModelWork one = must(iteration_work(llama(), {}, Precision::kFp16, batch));
  const ModelWork other = must(summed_iteration_work(llama(), {}, Precision::kFp16, sums));
  EXPECT_EQ(names(block(one).forward), names(block(other).forward));
  EXPECT_DOUBLE_EQ(flops_of(block(one).forward), flops_of(block(other).forward));
  const auto attention = attention_work(llama(), {}, Precision::kFp16, sums);
  ASSERT_EQ(attention.size(), 2U);
  EXPECT_EQ(attention[0].name, "prompt attention");
  // 300 x 512 cached pairs, and 300 x 301 / 2 new ones.
  EXPECT_DOUBLE_EQ(attention[0].flops, 4.0 * (300 * 512 + 45150) * 32 * 128);
  sums.rows = 0;
  EXPECT_FALSE(summed_iteration_work(llama(), {}, Precision::kFp16, sums));
}

/// A step of `tokens` single tokens of Mixtral 8x7B.
LayerWork mixture(std::uint32_t tokens, const Split& split = {}, std::uint64_t group = 0) {
  IterationSums sums;
  for (std::uint32_t i = 0; i < tokens; ++i) sums.singles.add({1, 100});
  sums.tokens = sums.rows = tokens;
  sums.group_tokens = group;
  return layer_of(must(summed_iteration_work(shipped("mixtral-8x7b"), split, Precision::kBf16,
                                             sums)),
                  "expert block");
}

// One token has two of eight experts; of 64 tokens each expert has some. An expert's first product
// has 2 x 14336 columns of 4096 weights, of 2 bytes.
TEST(InferenceWork, OnlyExpertsThatHaveATokenAreRead) {
  const KernelWork one = kernel(mixture(1).forward, "experts up gemm");
  EXPECT_EQ(one.gemm.batch, 2U);
  EXPECT_EQ(one.gemm.m, 1U);
  constexpr double kWeights = 2.0 * 28672 * 4096;
  EXPECT_NEAR(one.bytes, 2 * kWeights, 0.001 * kWeights);
  const KernelWork many = kernel(mixture(64).forward, "experts up gemm");
  EXPECT_EQ(many.gemm.batch, 8U);
  EXPECT_EQ(many.gemm.m, 16U);  // 64 tokens x 2 experts / 8
}

// Members with 24 tokens together: of 48 copies each of two GPUs has 24, for its four experts.
TEST(InferenceWork, MembersThatShareExpertsGatherAllTokens) {
  Split split;
  split.expert = 2;
  const LayerWork layer = mixture(8, split, 24);
  EXPECT_EQ(kernel(layer.forward, "router gemm").gemm.m, 8U);
  EXPECT_EQ(kernel(layer.forward, "experts up gemm").gemm.m, 6U);
  EXPECT_EQ(kernel(layer.forward, "experts up gemm").gemm.batch, 4U);
  ASSERT_THAT(exchanges(layer.forward), SizeIs(2));
  EXPECT_EQ(exchanges(layer.forward)[0].exchange, Exchange::kAllGather);
  EXPECT_EQ(exchanges(layer.forward)[1].exchange, Exchange::kReduceScatter);
  for (const Communication& exchange : exchanges(layer.forward)) {
    EXPECT_EQ(exchange.axis, ParallelAxis::kExpert);
    EXPECT_DOUBLE_EQ(exchange.bytes, 24.0 * 4096 * 2);
  }
  // Over two GPUs a member attention is split, and experts stay whole.
  split.tensor = 2;
  split.expert = 4;
  const LayerWork whole = mixture(8, split, 24);
  EXPECT_EQ(kernel(whole.forward, "experts up gemm").gemm.n, 28672U);
  EXPECT_EQ(kernel(whole.forward, "experts up gemm").gemm.batch, 2U);
  ASSERT_THAT(exchanges(whole.forward), SizeIs(4));  // attention's all-reduce first
  EXPECT_EQ(exchanges(whole.forward)[0].axis, ParallelAxis::kTensor);
  EXPECT_EQ(exchanges(whole.forward)[3].axis, ParallelAxis::kTensor);  // the member's tokens again
  EXPECT_DOUBLE_EQ(exchanges(whole.forward)[3].bytes, 8.0 * 4096 * 2);
}

TEST(InferenceWork, BatchesThatCannotBeAreFaults) {
  const auto none = iteration_work(llama(), {}, Precision::kFp16, {});
  EXPECT_THAT(none.error().message, HasSubstr("no sequence"));
  EXPECT_FALSE(iteration_work(llama(), {}, Precision::kFp16, {{0, 5}}));
  EXPECT_FALSE(decode_work(shipped("bert-base"), {}, Precision::kFp16, 1, 5));
  EXPECT_FALSE(decode_work(shipped("vgg19"), {}, Precision::kFp16, 1, 5));
  const auto far = decode_work(shipped("gpt2-large"), {}, Precision::kFp16, 1, 1024);
  EXPECT_THAT(far.error().message, HasSubstr("expected at most 1024"));
  EXPECT_FALSE(iteration_work(llama(), {}, Precision::kFp16, {{~std::uint64_t{0}, 1}}));
}

TEST(Speculation, ARoundDraftsLevelByLevelAndChecksTheWholeTree) {
  const TokenTree tree{{1, 1, 3, 1, 1, 1, 1, 1}};  // SpecInfer's: 2 + 6 x 3 tokens
  EXPECT_EQ(must(token_count(tree)), 20U);
  SpeculationShape shape;
  shape.sequences = 4;
  shape.context = 200;
  const auto work = must(speculation_work(llama(), shipped("llama-68m"), shape, tree));
  std::vector<std::uint64_t> rows;
  for (const ModelWork& step : work.draft) {
    rows.push_back(kernel(block(step).forward, "qkv gemm").gemm.m);
  }
  EXPECT_THAT(rows, ElementsAre(4, 4, 4, 12, 12, 12, 12, 12));
  EXPECT_EQ(kernel(block(work.verify).forward, "qkv gemm").gemm.m, 4U * 21);
  EXPECT_EQ(kernel(layer_of(work.verify, "head").forward, "logits gemm").gemm.m, 4U * 21);
  EXPECT_DOUBLE_EQ(kernel(block(work.verify).forward, "prompt attention").flops,
                   4.0 * 4 * (21 * 200 + 21 * 21) * 4096);
}

TEST(Speculation, AChainYieldsAGeometricSum) {
  // Leviathan et al. 2023, equation 1: (1 - 0.8^5) / (1 - 0.8) = 3.3616.
  EXPECT_NEAR(must(expected_accepted(0.8, chain(4))), 3.3616, 1e-12);
  EXPECT_DOUBLE_EQ(must(expected_accepted(1.0, chain(4))), 5.0);
  EXPECT_DOUBLE_EQ(must(expected_accepted(0.0, chain(4))), 1.0);
  // Two children of the root, one of each of those: 1 + 0.75 + 0.75 x 0.5.
  EXPECT_DOUBLE_EQ(must(expected_accepted(0.5, TokenTree{{2, 1}})), 2.125);
}

TEST(Speculation, TreesThatCannotBeAreFaults) {
  EXPECT_FALSE(token_count(TokenTree{}));
  EXPECT_FALSE(token_count(TokenTree{{2, 0}}));
  EXPECT_FALSE(token_count(TokenTree{{4000000000U, 4000000000U, 4000000000U}}));
  EXPECT_FALSE(expected_accepted(1.5, chain(2)));
}

TEST(OptimizerWork, MixedPrecisionAdamHoldsSixteenBytesAParameter) {
  OptimizerSpec spec;
  spec.gradients = GradientStore::kWrite;
  EXPECT_DOUBLE_EQ(optimizer_memory(spec).total(), 16.0);
  EXPECT_DOUBLE_EQ(optimizer_memory(spec).states, 12.0);
  spec.gradients = GradientStore::kAccumulateFp32;
  EXPECT_DOUBLE_EQ(optimizer_memory(spec).total(), 18.0);
}

TEST(OptimizerWork, AStepIsAFewPassesOverTheParameters) {
  OptimizerSpec spec;
  const auto items = must(optimizer_work(1e6, spec));
  EXPECT_THAT(names(items), ElementsAre("gradient unscale", "gradient norm", "gradient clip",
                                        "adam", "weight copy", "gradient zero"));
  // Gradient 4; weight and two moments of 4, read and written.
  EXPECT_DOUBLE_EQ(kernel(items, "adam").bytes, 28e6);
  EXPECT_DOUBLE_EQ(kernel(items, "weight copy").bytes, 6e6);
}

TEST(OptimizerWork, ManyParametersTakeManyLaunches) {
  OptimizerSpec spec;
  spec.weights = Precision::kFp32;
  spec.kind = Optimizer::kSgdMomentum;
  spec.clipping = GradientClipping::kNone;
  // A launch covers 320 x 65,536 = 20,971,520.
  const auto items = must(optimizer_work(41943041, spec));
  EXPECT_THAT(names(items), ElementsAre("sgd momentum", "sgd momentum", "sgd momentum",
                                        "gradient zero", "gradient zero", "gradient zero"));
  // Three arrays: 48 tensors a launch; zeroing has one: 110.
  EXPECT_THAT(names(must(optimizer_work(1e6, spec, 100))),
              ElementsAre("sgd momentum", "sgd momentum", "sgd momentum", "gradient zero"));
  EXPECT_THAT(must(optimizer_work(0, spec)), IsEmpty());
  EXPECT_FALSE(optimizer_work(-1, spec));
}

// The model files that ship, and faulty ones.
std::vector<std::string> faults_of(std::string_view text) {
  const auto model = parse_model(text, "m.json");
  std::vector<std::string> out;
  if (model) return out;
  for (const Error& error : model.error()) out.push_back(error.place + ": " + error.message);
  return out;
}

TEST(ModelFiles, ParametersAreThosePublished) {
  const auto models = must(read_model_folder(model_folder()));
  EXPECT_GE(models.size(), 25U);
  for (const ModelFile& file : models) {
    EXPECT_FALSE(file.source.empty()) << file.id;
    if (!file.published) continue;
    const double count = must(parameter_count(file.spec));
    const double allowed = std::max(0.01 * file.published->value, 0.5 * file.published->last_digit);
    EXPECT_NEAR(count, file.published->value, allowed) << file.id;
  }
}

TEST(ModelFiles, CountsKnownToTheLastParameterAreExact) {
  EXPECT_EQ(must(parameter_count(shipped("gpt2-large"))), 774030080.0);
  EXPECT_EQ(must(parameter_count(shipped("llama2-7b"))), 6738415616.0);
  EXPECT_EQ(must(parameter_count(shipped("chatglm-6b"))), 6173286400.0);
  EXPECT_EQ(must(parameter_count(shipped("mixtral-8x7b"))), 46702792704.0);
  EXPECT_EQ(must(parameter_count(shipped("llama3-405b"))), 405853388800.0);
  EXPECT_EQ(must(parameter_count(shipped("resnet152"))), 60192808.0);
  EXPECT_EQ(must(parameter_count(shipped("vgg19"))), 143667240.0);
  // BertModel has 109,482,240; two classes add 2 x 768 + 2.
  EXPECT_EQ(must(parameter_count(shipped("bert-base"))), 109482240.0 + 1538.0);
}

TEST(ModelFiles, AnUnknownNameIsAnsweredWithTheNearest) {
  const auto model = error_of(find_model("bert-bas", model_folder()));
  EXPECT_THAT(model.front().text(), HasSubstr("did you mean \"bert-base\""));
}

TEST(ModelFiles, AllFaultsOfAFileAreReportedAtOnce) {
  const auto faults = faults_of(R"({"name": "x", "source": "y", "family": "transformer",
      "layers": 0, "hidden": 100, "heads": 3, "vocabulary": 10, "max_sequence": 8,
      "positions": "rotry", "norm": "layer", "activation": "gelu", "biases": true,
      "dropout": false, "hiden": 5})");
  ASSERT_EQ(faults.size(), 4U) << ::testing::PrintToString(faults);
  EXPECT_THAT(faults[0], HasSubstr("/layers: "));
  EXPECT_THAT(faults[1], HasSubstr("/heads: found 3, which does not divide hidden (100)"));
  EXPECT_THAT(faults[2], HasSubstr("rotary"));
  EXPECT_THAT(faults[3], HasSubstr("hidden"));
}

TEST(ModelFiles, AWindowLargerThanItsImageIsAFault) {
  const auto faults = faults_of(R"({"name": "x", "source": "y", "family": "convolutional",
      "image": 4, "layers": [{"kind": "convolution", "out": 8, "kernel": 7}]})");
  EXPECT_THAT(faults, ElementsAre("/layers/0/kernel: found a window of 7 on an image of 4 with "
                                  "padding; expected at most that"));
}

TEST(ModelFiles, MoreChosenExpertsThanThereAreIsAFault) {
  const auto faults = faults_of(R"({"name": "x", "source": "y", "family": "transformer",
      "layers": 2, "hidden": 64, "heads": 4, "vocabulary": 10, "max_sequence": 8,
      "positions": "rotary", "norm": "rms", "activation": "swiglu", "biases": false,
      "dropout": false, "mixture": {"experts": 4, "top_k": 5, "expert_ffn": 64}})");
  EXPECT_THAT(faults, ElementsAre("/mixture/top_k: found 5; expected at most 4, the number of "
                                  "experts"));
}

}  // namespace
}  // namespace bubblesim::model
