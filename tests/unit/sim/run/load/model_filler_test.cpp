// Fillers that are made from a model, loaded.
#include "sim/run/model_filler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/hardware/gpu_spec_file.hpp"

namespace bubblesim::run {
namespace {

using ::testing::HasSubstr;

const std::string kDevices = BUBBLESIM_SOURCE_DIR "/configs/devices";

FillerConfig filler_of(const std::string& model) {
  FillerConfig filler;
  filler.name = "service";
  synth::InferenceNames names;
  names.model = model;
  names.batch = 2;
  filler.program = names;
  return filler;
}

CheckedResult<ModelFiller> load(FillerConfig& filler) {
  const auto device = hardware::find_gpu_spec("a100-40gb", kDevices);
  if (!device) return tl::make_unexpected(device.error());
  return load_model_filler(filler, *device, kDevices);
}

std::string fault(const std::string& model) {
  FillerConfig filler = filler_of(model);
  const auto program = load(filler);
  EXPECT_FALSE(program);
  return program ? "" : program.error().front().text();
}

TEST(ModelFiller, ItsMemoryIsTheModelsUnlessTheConfigSaysIt) {
  FillerConfig filler = filler_of("resnet152");
  ASSERT_TRUE(load(filler));
  ASSERT_TRUE(filler.memory);
  EXPECT_GT(filler.memory->value, 120'000'000U);  // 60.2 million weights of 2 bytes
  filler.memory = Bytes{7};
  ASSERT_TRUE(load(filler));
  EXPECT_EQ(filler.memory->value, 7U);
}

TEST(ModelFiller, FaultsNameTheNearestModelAndTheFiller) {
  EXPECT_THAT(fault("resnet15"), HasSubstr("did you mean \"resnet152\"?"));
  EXPECT_THAT(fault("gpt-175b"), HasSubstr("filler \"service\": "));
}

CheckedResult<ModelFiller> load_training(FillerConfig& filler, std::uint32_t data) {
  synth::JobNames names;
  names.model = "bert-base";
  names.cluster = "a100-40gb-4";
  synth::PlanSpec plan;
  plan.data = data;
  plan.global_batch = 8;
  plan.micro_batch = 2;
  plan.sequence = 128;
  names.plan = plan;
  filler.program = TrainProgram{names};
  const auto device = hardware::find_gpu_spec("a100-40gb", kDevices);
  if (!device) return tl::make_unexpected(device.error());
  return load_train_filler(filler, *device, kDevices);
}

TEST(ModelFiller, MayTrainOnOneGpu) {
  FillerConfig filler = filler_of("bert-base");
  const auto made = load_training(filler, 1);
  ASSERT_TRUE(made) << made.error().front().text();
  EXPECT_GT(made->program.ops.size(), 0U);
  ASSERT_TRUE(filler.memory);
  EXPECT_GT(filler.memory->value, 110'000'000U * 16U);  // weights, gradients and Adam's moments
  const auto many = load_training(filler, 4);
  ASSERT_FALSE(many);
  EXPECT_THAT(many.error().front().text(), HasSubstr("4 ranks; expected a plan of one"));
}

}  // namespace
}  // namespace bubblesim::run
