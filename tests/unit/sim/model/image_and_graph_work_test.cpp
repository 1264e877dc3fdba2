// Convolutional networks and networks of branches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/model/inference_work.hpp"
#include "tests/unit/sim/model/work_testing.hpp"

namespace bubblesim::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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
  const ModelWork work = value(
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
