// Fillers that are made from a model, loaded.
#include <gmock/gmock.h>

#include <cmath>

#include "sim/base/json.hpp"
#include "sim/base/output_file.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/run/model_filler.hpp"
#include "sim/step_cost/table_times.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/step_cost/layers_json.hpp"
#include "tests/unit/sim/step_cost/small_tables.hpp"

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
  EXPECT_THAT(error_of(load_training(filler, 4)).front().text(),
              HasSubstr("4 ranks; expected a plan of one"));
}

// Kernel times of a server's steps from a file of layer times, held to the tables asked directly.

constexpr const char* kGpu = "NVIDIA H100 80GB HBM3";

synth::ServerPlan small_plan(std::uint32_t tensor = 1) {
  synth::ServerPlan plan;
  plan.request.model.network = step_cost::test::small_model();
  plan.request.gpu.name = kGpu;
  plan.request.gpu.sm_count = 132;
  plan.scheduler.max_model_len = 800;
  plan.scheduler.max_num_seqs = 8;
  plan.scheduler.max_num_batched_tokens = 16;
  plan.split.tensor = tensor;
  return plan;
}

serving::ScheduledStep decode_of(std::uint32_t sequences, std::uint32_t context) {
  serving::ScheduledStep step;
  for (std::uint32_t i = 0; i < sequences; ++i) step.add({.context = context});
  return step;
}

class LayerFile : public testing::Test {
 protected:
  std::string write(const std::string& gpu) {
    tables_ = {gpu, "small", "vLLM", "by hand", {step_cost::test::small_tables()}};
    const std::string path = folder_->path() + "/layers.json";
    EXPECT_TRUE(write_whole_file(path, step_cost::test::layers_json(tables_).dump()));
    return path;
  }
  std::unique_ptr<ScratchFolder> folder_ =
      std::move(*ScratchFolder::make(testing::TempDir(), "layer-kernels"));
  step_cost::LayerTables tables_;
};

TEST_F(LayerFile, AStepTakesWhatTheTablesSay) {
  const synth::ServerPlan plan = small_plan();
  auto loaded = load_layer_kernels(write(kGpu), plan);
  ASSERT_TRUE(loaded) << loaded.error().text();
  EXPECT_EQ(loaded->counters.count("layer_tables_of_other_gpu"), 0U);
  const auto kernels = loaded->maker();
  const model::TransformerSpec model = step_cost::test::small_model();
  step_cost::TableTimes tables(tables_.ranks[0], model, {}, 132);
  step_cost::Batch batch;
  for (const std::uint32_t sequences : {1U, 8U}) {
    const serving::ScheduledStep step = decode_of(sequences, 499);
    step_cost::set_batch(step, step_cost::vllm_capture_sizes({.max_num_seqs = 8}), batch);
    EXPECT_EQ(kernels->kernel_time(step, {sequences, sequences}),
              Duration{std::llround(1e3 * tables.batch_us(batch))});
  }
}

TEST_F(LayerFile, TablesOfAnotherGpuAndStepsBeyondThemAreCounted) {
  synth::ServerPlan plan = small_plan();
  plan.scheduler.max_model_len = 4000;  // tables end at 1000 tokens of a sequence
  const auto loaded = load_layer_kernels(write("NVIDIA A100-SXM4-80GB"), plan);
  ASSERT_TRUE(loaded) << loaded.error().text();
  EXPECT_EQ(loaded->counters.count("layer_tables_of_other_gpu"), 1U);
  EXPECT_GT(loaded->counters.count("beyond_layer_tables"), 0U);
}

TEST_F(LayerFile, TablesOfOneSequenceSpeakAgainstAServerOfSeveral) {
  const std::string path = write(kGpu);
  step_cost::RankTables& rank = tables_.ranks.front();
  rank.decode = step_cost::TimeGrid({{1}, {0, 1000}}, {4, 14});
  rank.mixed = {};
  ASSERT_TRUE(write_whole_file(path, step_cost::test::layers_json(tables_).dump()));
  for (const std::uint32_t sequences : {1U, 8U}) {
    synth::ServerPlan plan = small_plan();
    plan.scheduler.max_num_seqs = sequences;
    const auto loaded = load_layer_kernels(path, plan);
    ASSERT_TRUE(loaded) << loaded.error().text();
    EXPECT_EQ(loaded->counters.count(kLayersOfOneSequence.name), sequences > 1 ? 1U : 0U);
  }
}

TEST_F(LayerFile, OfOtherGpusOrOtherLayersIsAFault) {
  EXPECT_THAT(error_of(load_layer_kernels(write(kGpu), small_plan(2))).text(),
              HasSubstr("on 2 GPUs that share each layer; profiled: 1"));
  synth::ServerPlan other = small_plan();
  other.request.model.published_as = {"large"};
  EXPECT_THAT(error_of(load_layer_kernels(write(kGpu), other)).text(),
              HasSubstr("found the model 'large'; the layer times are of 'small'"));
  synth::ServerPlan experts = small_plan();
  std::get<model::TransformerSpec>(experts.request.model.network).mixture.emplace();
  EXPECT_THAT(error_of(load_layer_kernels(write(kGpu), experts)).text(),
              HasSubstr("have none of experts, and the model has"));
}

}  // namespace
}  // namespace bubblesim::run
