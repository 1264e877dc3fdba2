// Transformers in training: arithmetic, memory and exchanges against published formulas.
#include <gmock/gmock.h>

#include <algorithm>

#include "sim/model/inference_work.hpp"
#include "sim/model/training_work.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/model/work_testing.hpp"

namespace bubblesim::model {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;
using ::testing::SizeIs;

// s = 1024, b = 2, h = 1024, a = 16: s b h = 2 Mi elements.
constexpr double kS = 1024;
constexpr double kB = 2;
constexpr double kH = 1024;
constexpr double kA = 16;
constexpr double kSbh = kS * kB * kH;

ModelSpec small() { return gpt(1024, 4, 16, 51200, 1024); }

LayerWork block(TrainingShape shape, Split split = {}) {
  return layer_of(train(small(), shape, split), "block");
}

Split tensor(std::uint32_t size, bool sequence_parallel) {
  Split split;
  split.tensor = size;
  split.sequence_parallel = sequence_parallel;
  return split;
}

double all_products(const ModelWork& work) {
  double sum = 0;
  for (const std::uint32_t kind : work.layers) {
    const LayerWork& layer = work.kinds[kind];
    sum += product_flops(layer.forward) + product_flops(layer.recompute) +
           product_flops(layer.input_grad) + product_flops(layer.weight_grad);
  }
  return sum;
}

// Narayanan et al., SC 2021, appendix: 72 B s l h^2 (1 + s/6h + V/12lh), without recomputation.
TEST(TrainingWork, ProductsOfAStepAreThoseOfMegatronsFormula) {
  for (const char* id : {"gpt-1.7b", "gpt-18b", "gpt-175b", "gpt-1t"}) {
    const ModelSpec model = shipped(id);
    const auto& spec = std::get<TransformerSpec>(model.network);
    const auto h = static_cast<double>(spec.hidden);
    const double l = spec.layers;
    const double s = 2048;
    TrainingShape shape = run_of(2, 2048);
    const double once = 72 * 2 * s * l * h * h * (1 + s / (6 * h) + 51200 / (12 * l * h));
    EXPECT_NEAR(all_products(train(model, shape)) / once, 1.0, 1e-9) << id;
    shape.recompute = Recompute::kFull;
    const double again = 96 * 2 * s * l * h * h * (1 + s / (6 * h) + 51200 / (16 * l * h));
    EXPECT_NEAR(all_products(train(model, shape)) / again, 1.0, 1e-9) << id;
  }
}

TEST(TrainingWork, AllArithmeticIsWithinOnePercentOfTheFormula) {
  const ModelWork work = train(shipped("gpt-18b"), run_of(1, 2048));
  double all = 0;
  for (const std::uint32_t kind : work.layers) {
    const LayerWork& layer = work.kinds[kind];
    all += flops_of(layer.forward) + flops_of(layer.input_grad) + flops_of(layer.weight_grad);
  }
  EXPECT_NEAR(all / all_products(work), 1.0, 0.01);
}

// Zero bubble pipeline parallelism (Qi et al. 2024), table 1.
TEST(TrainingWork, ABlocksPassesSplitAsInZeroBubblesTable) {
  const LayerWork layer = block(run_of(2, 1024));
  EXPECT_DOUBLE_EQ(product_flops(layer.forward), kSbh * (24 * kH + 4 * kS));
  EXPECT_DOUBLE_EQ(product_flops(layer.input_grad), kSbh * (24 * kH + 8 * kS));
  EXPECT_DOUBLE_EQ(product_flops(layer.weight_grad), 24 * kSbh * kH);
  EXPECT_DOUBLE_EQ(layer.weight_grad_bytes, 32 * kSbh);
}

// Korthikanti et al. 2022, table 2.
TEST(TrainingWork, ABlockKeepsWhatKorthikantisTableSays) {
  const double scores = 5 * kA * kS / kH;
  TrainingShape shape = run_of(2, 1024);
  EXPECT_DOUBLE_EQ(block(shape).activation_bytes, kSbh * (34 + scores));
  EXPECT_DOUBLE_EQ(block(shape, tensor(8, false)).activation_bytes,
                   kSbh * (10 + 24.0 / 8 + scores / 8));
  EXPECT_DOUBLE_EQ(block(shape, tensor(8, true)).activation_bytes, kSbh * (34 + scores) / 8);
  shape.recompute = Recompute::kSelective;
  EXPECT_DOUBLE_EQ(block(shape).activation_bytes, kSbh * 34);
  EXPECT_DOUBLE_EQ(block(shape, tensor(8, true)).activation_bytes, kSbh * 34 / 8);
  shape.recompute = Recompute::kFull;
  EXPECT_DOUBLE_EQ(block(shape, tensor(8, false)).activation_bytes, kSbh * 2);
}

TEST(TrainingWork, FusedAttentionKeepsNoScores) {
  TrainingShape shape = flash_run_of(2, 1024);
  // Besides the 34: one FP32 number for each row of scores.
  EXPECT_DOUBLE_EQ(block(shape).activation_bytes, kSbh * 34 + 4 * kA * kS * kB);
  shape.recompute = Recompute::kSelective;
  EXPECT_THAT(block(shape).recompute, IsEmpty());
}

TEST(TrainingWork, FusedCausalAttentionSkipsHalfOfTheScores) {
  const LayerWork layer = block(flash_run_of(2, 1024));
  // 4 b s^2 h / 2; backward 2.5 times as much.
  EXPECT_DOUBLE_EQ(kernel(layer.forward, "attention").flops, 2 * kSbh * kS);
  EXPECT_DOUBLE_EQ(kernel(layer.input_grad, "attention input-grad").flops, 5 * kSbh * kS);
}

TEST(TrainingWork, SelectiveRecomputationRunsTheScoresAgain) {
  TrainingShape shape = run_of(2, 1024);
  shape.recompute = Recompute::kSelective;
  const LayerWork layer = block(shape);
  EXPECT_THAT(names(layer.recompute),
              ElementsAre("scores gemm", "scale mask softmax", "attention dropout", "values gemm",
                          "heads copy"));
  EXPECT_DOUBLE_EQ(product_flops(layer.recompute), 4 * kSbh * kS);
}

TEST(TrainingWork, ScoresThatTheFusedKernelDoesNotTakeGoThroughFiveInFp32) {
  const auto block_of = [](std::uint64_t sequence, std::uint32_t ranks, std::uint64_t longest) {
    TrainingShape shape = run_of(2, sequence);
    shape.fused_softmax = longest;
    return block(shape, tensor(ranks, false));
  };
  const auto fused = [&](std::uint64_t sequence, std::uint32_t ranks,
                         std::uint64_t longest = 1024) {
    const auto list = names(block_of(sequence, ranks, longest).forward);
    return std::count(list.begin(), list.end(), "scale mask softmax") == 1;
  };
  EXPECT_TRUE(fused(1024, 8));  // 2 samples of 2 heads
  EXPECT_FALSE(fused(1024, 16));
  EXPECT_FALSE(fused(1024, 1, 1023));
  EXPECT_FALSE(fused(1022, 1));
  EXPECT_TRUE(fused(20, 1));
  EXPECT_FALSE(fused(16, 1));
  const LayerWork layer = block_of(1024, 1, 512);
  const auto bytes = [](const std::vector<WorkItem>& list) {
    double sum = 0;
    for (const char* name : {"scores to fp32", "scores scale", "scores mask", "softmax",
                             "softmax cast", "softmax gradient to fp32", "softmax input-grad",
                             "scores mask input-grad", "scores scale input-grad",
                             "scores gradient cast"}) {
      const auto all = names(list);
      if (std::count(all.begin(), all.end(), name) > 0) sum += kernel(list, name).bytes;
    }
    return sum / (kA * kB * kS * kS);
  };
  EXPECT_DOUBLE_EQ(bytes(layer.forward), 6 + 8 + 8 + 8 + 6);
  EXPECT_DOUBLE_EQ(bytes(layer.input_grad), 6 + 12 + 8 + 8 + 6);
  // The softmax's output, 4 bytes, dropout's, and the mask; 5 in all if it is fused.
  EXPECT_DOUBLE_EQ(layer.activation_bytes, kSbh * (34 + 7 * kA * kS / kH));
}

TEST(TrainingWork, AForwardBlockIsTheKernelsOfMegatron) {
  EXPECT_THAT(names(block(run_of(2, 1024), tensor(8, false)).forward),
              ElementsAre("layernorm", "qkv gemm", "qkv bias", "scores gemm", "scale mask softmax",
                          "attention dropout", "values gemm", "heads copy",
                          "attention output gemm", "output all-reduce", "bias dropout add",
                          "layernorm", "up gemm", "bias gelu", "down gemm", "output all-reduce",
                          "bias dropout add"));
}

TEST(TrainingWork, TensorRanksReduceTwiceForwardAndTwiceBackward) {
  const LayerWork layer = block(run_of(2, 1024), tensor(8, false));
  for (const auto& list : {layer.forward, layer.input_grad}) {
    ASSERT_THAT(exchanges(list), SizeIs(2));
    for (const Communication& communication : exchanges(list)) {
      EXPECT_EQ(communication.exchange, Exchange::kAllReduce);
      EXPECT_DOUBLE_EQ(communication.bytes, 2 * kSbh);
    }
  }
  EXPECT_THAT(exchanges(layer.weight_grad), IsEmpty());
  EXPECT_DOUBLE_EQ(product_flops(layer.forward), kSbh * (24 * kH + 4 * kS) / 8);
}

TEST(TrainingWork, SequenceParallelGathersAndScattersInsteadOfReducing) {
  const LayerWork layer = block(run_of(2, 1024), tensor(8, true));
  std::vector<Exchange> forward;
  for (const Communication& communication : exchanges(layer.forward))
    forward.push_back(communication.exchange);
  EXPECT_THAT(forward, ElementsAre(Exchange::kAllGather, Exchange::kReduceScatter,
                                   Exchange::kAllGather, Exchange::kReduceScatter));
  EXPECT_THAT(exchanges(layer.input_grad), SizeIs(4));
  EXPECT_THAT(exchanges(layer.weight_grad), SizeIs(2));  // inputs of the split products again
  EXPECT_DOUBLE_EQ(layer.output_bytes, 2 * kSbh / 8);
}

TEST(TrainingWork, AWholeBackwardRunsExchangesBesideTheProductsThatDoNotNeedThem) {
  const LayerWork layer = block(run_of(2, 1024), tensor(8, true));
  const auto items = backward_items(layer, BackwardExchanges::kOverlapped);
  EXPECT_EQ(items.size(), layer.input_grad.size() + layer.weight_grad.size());
  const auto order = names(items);
  const auto at = std::find(order.begin(), order.end(), "up input all-gather");
  ASSERT_LT(at + 3, order.end());
  EXPECT_EQ(at[1], "up gemm input-grad");
  EXPECT_EQ(at[2], "up gradient reduce-scatter");
  EXPECT_EQ(at[3], "up gemm weight-grad");
  for (const Communication& communication : exchanges(items)) {
    const bool needed_at_once = communication.name.find("gradient all-gather") != std::string::npos;
    EXPECT_EQ(communication.overlaps_next, !needed_at_once) << communication.name;
  }
  for (const Communication& communication :
       exchanges(backward_items(layer, BackwardExchanges::kSerial))) {
    EXPECT_FALSE(communication.overlaps_next) << communication.name;
  }
}

TEST(TrainingWork, AccumulatedGradientsAreReadAndWrittenInFourBytes) {
  TrainingShape shape = run_of(2, 1024);
  const double once = kernel(block(shape).weight_grad, "up gemm weight-grad").bytes;
  shape.gradients = GradientStore::kAccumulateFp32;
  const double added = kernel(block(shape).weight_grad, "up gemm weight-grad").bytes;
  EXPECT_DOUBLE_EQ(added - once, 6 * 4 * kH * kH);
}

TEST(TrainingWork, TensorRanksHoldAnEighthOfTheMatricesAndAllOfTheNorms) {
  const double whole = parameters_of(block(run_of(1, 1024)));
  EXPECT_DOUBLE_EQ(whole, 12 * kH * kH + 13 * kH);
  // Split: 12 h^2, and the biases of qkv (3h) and up (4h); whole: 4 norms and 2 biases of h.
  const double part = parameters_of(block(run_of(1, 1024), tensor(8, false)));
  EXPECT_DOUBLE_EQ(part, (12 * kH * kH + 7 * kH) / 8 + 6 * kH);
}

TEST(TrainingWork, ASplitVocabularyIsPaddedAsInMegatron) {
  // GPT-2: 50,257 rows; 8 ranks pad to a multiple of 1,024: 51,200, so 6,400 each.
  const ModelWork work = train(gpt(1280, 2, 40, 50257, 1024), run_of(1, 1024), tensor(8, false));
  EXPECT_DOUBLE_EQ(layer_of(work, "embedding").parameter_tensors.front(), 6400.0 * 1280);
  EXPECT_THAT(layer_of(work, "head").shared_tensors, ElementsAre(6400.0 * 1280));
  EXPECT_EQ(kernel(layer_of(work, "head").forward, "logits gemm").gemm.n, 6400U);
}

TEST(TrainingWork, LayersAlikeShareOneKind) {
  const ModelWork work = train(shipped("gpt-175b"), run_of(1, 2048), tensor(8, false));
  EXPECT_EQ(work.kinds.size(), 3U);
  EXPECT_EQ(work.layers.size(), 98U);
  EXPECT_THAT(work.inputs, IsEmpty());
}

TEST(TrainingWork, ASplitThatDoesNotDivideNamesTheNearestThatDoes) {
  EXPECT_EQ(error_of(training_work(small(), tensor(6, false), run_of(1, 1024))).message,
            "gpt h1024 l4: tensor size 6 does not divide 16 heads and inner width 4096; expected "
            "4 or 8 (nearest that do)");
  Split context;
  context.context = 3;
  TrainingShape shape = flash_run_of(1, 1024);
  EXPECT_THAT(training_work(small(), context, shape).error().message, HasSubstr("expected 2 or 4"));
  EXPECT_THAT(training_work(small(), {}, run_of(1, 4096)).error().message,
              HasSubstr("gpt h1024 l4 has positions for 1024"));
  EXPECT_THAT(training_work(small(), tensor(4294967295U, false), run_of(1, 1024)).error().message,
              HasSubstr("expected 16 (nearest that do)"));
  EXPECT_THAT(training_work(gpt(100, 2, 3, 10, 8), {}, run_of(1, 8)).error().message,
              HasSubstr("3 heads do not divide a hidden size of 100"));
  EXPECT_FALSE(training_work(small(), tensor(0, false), run_of(1, 1024)));
  EXPECT_FALSE(training_work(shipped("vgg19"), tensor(2, false), run_of(1, 0)));
}

TEST(TrainingWork, ContextRanksPassKeysAndValuesRoundBesideTheAttention) {
  Split split;
  split.context = 4;
  TrainingShape shape = flash_run_of(1, 8192);
  shape.precision = Precision::kBf16;
  const LayerWork whole = layer_of(train(shipped("llama3-405b"), shape), "block");
  const LayerWork layer = layer_of(train(shipped("llama3-405b"), shape, split), "block");
  const auto rings = exchanges(layer.forward);
  ASSERT_THAT(rings, SizeIs(3));
  for (const Communication& ring : rings) {
    EXPECT_EQ(ring.axis, ParallelAxis::kContext);
    EXPECT_TRUE(ring.overlaps_next);
    EXPECT_DOUBLE_EQ(ring.bytes, 2.0 * 2048 * 8 * 128 * 2);  // k and v, 8 heads of 128, BF16
  }
  EXPECT_DOUBLE_EQ(product_flops(layer.forward) * 4, product_flops(whole.forward));
}

TEST(TrainingWork, SharedKeysShrinkTheProjectionAndWhatIsKept) {
  const LayerWork layer = layer_of(train(shipped("llama3-405b"), flash_run_of(1, 8192)), "block");
  EXPECT_EQ(kernel(layer.forward, "qkv gemm").gemm.n, 16384U + 2 * 8 * 128);
  // Norm and linear inputs 4 x h, q and o 2 x h, k and v 2 x 1024, gate, up and their product.
  const double per_layer = 4 * 16384.0 + 2 * 16384 + 2 * 1024 + 3 * 53248;
  EXPECT_DOUBLE_EQ(layer.activation_bytes, 8192 * (2 * per_layer + 4 * 128));
}

TEST(TrainingWork, ExpertsExchangeTokensTwiceEachWayAndShareTheWork) {
  Split split;
  split.expert = 8;
  TrainingShape shape = flash_run_of(1, 4096);
  const LayerWork layer = layer_of(train(shipped("mixtral-8x7b"), shape, split), "expert block");
  const auto forward = exchanges(layer.forward);
  ASSERT_THAT(forward, SizeIs(2));
  EXPECT_EQ(forward.front().exchange, Exchange::kAllToAll);
  EXPECT_DOUBLE_EQ(forward.front().bytes, 4096.0 * 2 * 4096 * 2);  // two copies of each token
  EXPECT_THAT(exchanges(layer.input_grad), SizeIs(2));
  // One expert here; it works on as many copies as this GPU sends: 2 x 4096.
  const KernelWork up = kernel(layer.forward, "experts up gemm");
  EXPECT_EQ(up.gemm.batch, 1U);
  EXPECT_EQ(up.gemm.m, 8192U);
  EXPECT_DOUBLE_EQ(up.flops, 2.0 * 8192 * 4096 * 2 * 14336);
  EXPECT_THAT(layer.expert_tensors, ElementsAre(4096.0 * 2 * 14336, 4096.0 * 14336));
  split.expert_load = 1.5;
  const LayerWork busy = layer_of(train(shipped("mixtral-8x7b"), shape, split), "expert block");
  EXPECT_DOUBLE_EQ(kernel(busy.forward, "experts up gemm").flops, 1.5 * up.flops);
}

// Products are of a rank's own tokens. What it sends and receives ends when the busiest rank's has.
TEST(TrainingWork, ARankComputesItsOwnTokensAndExchangesAsLongAsTheBusiest) {
  const TrainingShape shape = run_of(1, 4096);
  Split split;
  split.expert = 8;
  const LayerWork mean = layer_of(train(shipped("mixtral-8x7b"), shape, split), "expert block");
  split.expert_load = 1.5;
  split.own_expert_load = 0.25;
  const LayerWork idle = layer_of(train(shipped("mixtral-8x7b"), shape, split), "expert block");
  EXPECT_DOUBLE_EQ(kernel(idle.forward, "experts up gemm").flops,
                   0.25 * kernel(mean.forward, "experts up gemm").flops);
  EXPECT_DOUBLE_EQ(kernel(idle.forward, "router gemm").flops,
                   kernel(mean.forward, "router gemm").flops);
  EXPECT_DOUBLE_EQ(exchanges(idle.forward).front().bytes,
                   1.5 * exchanges(mean.forward).front().bytes);
  split.own_expert_load = 1.75;
  EXPECT_FALSE(training_work(shipped("mixtral-8x7b"), split, shape).has_value());
}

TEST(TrainingWork, AnEncoderEndsInItsClassifier) {
  const ModelWork work = train(shipped("bert-base"), run_of(8, 128));
  EXPECT_THAT(names(layer_of(work, "head").forward),
              ElementsAre("pooler gemm", "pooler tanh", "classifier gemm", "loss"));
  const LayerWork layer = layer_of(work, "block");
  EXPECT_EQ(names(layer.forward).back(), "layernorm");
  // 2 x 12 h^2 b s, and scores 4 b s^2 h.
  EXPECT_DOUBLE_EQ(product_flops(layer.forward), 8.0 * 128 * 768 * (24 * 768 + 4 * 128));
}

TEST(TrainingWork, EveryKernelHasWorkAndEveryWeightGradientItsPlace) {
  for (const char* id : {"bert-base", "llama2-7b", "mixtral-8x7b", "resnet152", "mmt", "dlrm"}) {
    TrainingShape shape = run_of(2, 512);
    const ModelWork work = train(shipped(id), shape);
    for (const LayerWork& layer : work.kinds) {
      ASSERT_EQ(layer.weight_grad.size(), layer.weight_grad_after.size()) << id;
      for (const std::uint32_t after : layer.weight_grad_after) {
        EXPECT_LE(after, layer.input_grad.size()) << id;
      }
      EXPECT_TRUE(std::is_sorted(layer.weight_grad_after.begin(), layer.weight_grad_after.end()));
      for (const auto& item : backward_items(layer, BackwardExchanges::kOverlapped)) {
        const auto* kernel = std::get_if<KernelWork>(&item);
        EXPECT_TRUE(kernel == nullptr || kernel->bytes > 0) << id << " " << layer.kind;
      }
      for (const auto& item : layer.forward) {
        const auto* kernel = std::get_if<KernelWork>(&item);
        EXPECT_TRUE(kernel == nullptr || (kernel->bytes > 0 && !kernel->name.empty())) << id;
      }
    }
  }
}

// Convolutional networks and networks of branches.

double forward_products(const ModelWork& work) {
  double sum = 0;
  for (const std::uint32_t kind : work.layers) sum += product_flops(work.kinds[kind].forward);
  return sum;
}

ModelSpec one_convolution() {
  ConvolutionLayer layer;
  layer.out = 16;
  layer.kernel = 3;
  layer.stride = 2;
  layer.padding = 1;
  return ModelSpec{"one", ConvolutionalSpec{8, 32, {layer}}};
}

TEST(ImageWork, PublishedMultiplyAddsAnImage) {
  // torchvision's tables: 11.51 and 19.63 billion multiply-adds at 224 x 224.
  EXPECT_NEAR(forward_products(train(shipped("resnet152"), run_of(1, 0))) / 2, 11.51e9, 0.01e9);
  EXPECT_NEAR(forward_products(train(shipped("vgg19"), run_of(1, 0))) / 2, 19.63e9, 0.01e9);
}

TEST(ImageWork, AConvolutionIsThreeImplicitProductsOfEqualArithmetic) {
  const LayerWork layer = train(one_convolution(), run_of(4, 0)).kinds.front();
  // 32 x 32 in, stride 2: 16 x 16 out. 4 x 256 pixels, 16 outputs, depth 8 x 9.
  const KernelWork forward = kernel(layer.forward, "conv 3x3");
  EXPECT_EQ(forward.gemm.m, 1024U);
  EXPECT_EQ(forward.gemm.n, 16U);
  EXPECT_EQ(forward.gemm.k, 72U);
  EXPECT_DOUBLE_EQ(forward.flops, 2.0 * 1024 * 16 * 72);
  // FP16: image 4 x 8 x 1024, weights 16 x 72, output 4 x 16 x 256.
  EXPECT_DOUBLE_EQ(forward.bytes, 2.0 * (32768 + 1152 + 16384));
  EXPECT_DOUBLE_EQ(kernel(layer.input_grad, "conv 3x3 input-grad").flops, forward.flops);
  EXPECT_DOUBLE_EQ(kernel(layer.weight_grad, "conv 3x3 weight-grad").flops, forward.flops);
  EXPECT_DOUBLE_EQ(layer.activation_bytes, 2.0 * 32768);
}

TEST(ImageWork, ResNetsBlocksAlikeShareOneKind) {
  const ModelWork work = train(shipped("resnet152"), run_of(2, 0));
  // Stem, pool, 50 blocks, pool, linear, loss; a first and a further kind of each block.
  EXPECT_EQ(work.layers.size(), 55U);
  EXPECT_EQ(work.kinds.size(), 2U + 8U + 3U);
}

TEST(ImageWork, ARequestHasNoBackwardNoDropoutAndNoLoss) {
  const ModelWork work = must(
      forward_work(shipped("vgg19"), {}, Precision::kFp16, 8, 0, AttentionKernels::kFlash));
  for (const LayerWork& layer : work.kinds) {
    EXPECT_THAT(layer.input_grad, IsEmpty());
    EXPECT_THAT(layer.weight_grad, IsEmpty());
    for (const std::string& name : names(layer.forward)) {
      EXPECT_NE(name, "dropout");
      EXPECT_NE(name, "loss");
    }
  }
}

TEST(GraphWork, BranchesMeetInTheJoin) {
  const ModelWork work = train(shipped("candle-uno"), run_of(16, 0));
  // 7 branches of 4, the join, 4 layers, the output.
  ASSERT_EQ(work.layers.size(), 28U + 1 + 4 + 1);
  ASSERT_EQ(work.inputs.size(), work.layers.size());
  EXPECT_THAT(work.inputs[0], IsEmpty());
  EXPECT_THAT(work.inputs[3], ElementsAre(2));
  EXPECT_THAT(work.inputs[4], IsEmpty());
  EXPECT_THAT(work.inputs[28], ElementsAre(3, 7, 11, 15, 19, 23, 27));
  EXPECT_THAT(work.inputs[33], ElementsAre(32));
  // 28 layers of 4096 x 4096, 7 x 4096 into the first after the join, 3 more, 1 output.
  const double square = 2.0 * 16 * 4096 * 4096;
  EXPECT_DOUBLE_EQ(forward_products(work), square * (28 + 7 + 3) + 2.0 * 16 * 4096);
}

TEST(GraphWork, TransformersJoinTokenByToken) {
  const ModelWork work = train(shipped("mmt"), run_of(2, 0));
  ASSERT_EQ(work.layers.size(), 32U + 1 + 1);
  EXPECT_THAT(work.inputs[32], ElementsAre(7, 15, 23, 31));
  const LayerWork& last = work.kinds[work.layers.back()];
  EXPECT_DOUBLE_EQ(product_flops(last.forward), 2.0 * (2 * 256) * 4096 * 1024);
}

}  // namespace
}  // namespace bubblesim::model
