// Fillers that are made from a model, loaded.
#include <gmock/gmock.h>

#include <cmath>

#include "sim/base/json.hpp"
#include "sim/base/output_file.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/run/model_filler.hpp"
#include "sim/run/run_inputs.hpp"
#include "sim/step_cost/table_times.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/step_cost/small_tables.hpp"

namespace bubblesim::run {
namespace {

using ::testing::HasSubstr;
using network::Direction, network::LinkId;

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

hardware::GpuSpec a100() { return must(hardware::find_gpu_spec("a100-40gb", kDevices)); }

CheckedResult<LoadedFiller> load(const FillerConfig& filler) {
  return load_model_filler(filler, a100(), kDevices);
}

std::string fault(const std::string& model) {
  return error_of(load(filler_of(model))).front().text();
}

TEST(ModelFiller, ItsMemoryIsTheModelsUnlessTheConfigSaysIt) {
  LoadedRun run;
  run.config.fillers = {filler_of("resnet152"), filler_of("resnet152")};
  run.config.fillers[1].memory = Bytes{7};
  for (int i = 0; i < 2; ++i) {
    add_filler(run, must(load(run.config.fillers[i])));
  }
  EXPECT_GT(run.config.fillers[0].memory->value, 120'000'000U);  // 60.2 million weights of 2 bytes
  EXPECT_EQ(run.config.fillers[1].memory->value, 7U);
}

TEST(ModelFiller, FaultsNameTheNearestModelAndTheFiller) {
  EXPECT_THAT(fault("resnet15"), HasSubstr("did you mean \"resnet152\"?"));
  EXPECT_THAT(fault("gpt-175b"), HasSubstr("filler \"service\": "));
}

CheckedResult<LoadedFiller> load_training(std::uint32_t data,
                                          const hardware::GpuSpec& device = a100()) {
  synth::JobNames names;
  names.model = "bert-base";
  names.cluster = "a100-40gb-4";
  synth::PlanSpec plan;
  plan.data = data;
  plan.global_batch = 8;
  plan.micro_batch = 2;
  plan.sequence = 128;
  names.plan = plan;
  FillerConfig filler = filler_of("bert-base");
  filler.program = TrainProgram{names};
  return load_train_filler(filler, device, kDevices);
}

TEST(ModelFiller, MayTrainOnOneGpu) {
  const auto made = must(load_training(1));
  EXPECT_GT(made.program.ops.size(), 0U);
  EXPECT_GT(made.memory->value, 110'000'000U * 16U);  // weights, gradients and Adam's moments
  EXPECT_THAT(error_of(load_training(4)).front().text(),
              HasSubstr("4 ranks; expected a plan of one"));
}

// A device file of one's own, with the name of a shipped one, whose efficiency it takes.
TEST(ModelFiller, TrainsOnTheRunsGpuAndNotOnTheShippedOneOfItsName) {
  const auto step = [](const hardware::GpuSpec& device) {
    Duration sum{};
    for (const program::Op& op : must(load_training(1, device)).program.ops) {
      sum += op.duration;
    }
    return to_seconds(sum);
  };
  hardware::GpuSpec slow = a100();
  slow.id = "mine";
  slow.dram_bandwidth.value /= 100;
  EXPECT_GT(step(slow), 10 * step(a100()));
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
  auto loaded = must(load_layer_kernels(write(kGpu), plan));
  EXPECT_EQ(loaded.counters.count("layer_tables_of_other_gpu"), 0U);
  const auto kernels = loaded.maker();
  const model::TransformerSpec model = step_cost::test::small_model();
  step_cost::TableTimes tables(tables_.ranks[0], model, {}, 132);
  step_cost::Batch batch;
  for (const std::uint32_t sequences : {1U, 8U}) {
    const serving::ScheduledStep step = serving::decode_step(1, sequences, 499);
    const auto shape = step_cost::shape_of(step, step_cost::vllm_graphs({.max_num_seqs = 8}));
    step_cost::set_batch(step, shape, batch);
    EXPECT_EQ(kernels->kernel_time(step, shape),
              Duration{std::llround(1e3 * tables.batch_us(batch))});
  }
}

TEST_F(LayerFile, TablesOfAnotherGpuAndStepsBeyondThemAreCounted) {
  synth::ServerPlan plan = small_plan();
  plan.scheduler.max_model_len = 4000;  // tables end at 1000 tokens of a sequence
  const auto loaded = must(load_layer_kernels(write("NVIDIA A100-SXM4-80GB"), plan));
  EXPECT_EQ(loaded.counters.count("layer_tables_of_other_gpu"), 1U);
  EXPECT_GT(loaded.counters.count("beyond_layer_tables"), 0U);
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
    const auto loaded = must(load_layer_kernels(path, plan));
    EXPECT_EQ(loaded.counters.count(kLayersOfOneSequence.name), sequences > 1 ? 1U : 0U);
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

// Which links of a cluster a config's faults slow.

/// Four nodes of two GPUs and NICs, two nodes a leaf with two up-links.
hardware::ClusterSpec two_leaves(hardware::FlowPlacement placement) {
  hardware::ClusterSpec spec;
  spec.gpus_per_node = 2;
  spec.nodes = 4;
  spec.node.bandwidth = {100e9};
  spec.nics = {2, {10e9}, Duration{}};
  spec.tree = {.nodes_per_leaf = 2, .uplinks = 2, .placement = placement};
  return spec;
}

/// Of a fault at GPU 1 in a job that sends from `from` to `to`: the links, or what is wrong.
CheckedResult<std::vector<LinkId>> slowed(LinkFault::Kind kind, hardware::ClusterSpec cluster,
                                          std::uint32_t from, std::uint32_t to) {
  const network::Topology topology(std::move(cluster));
  workload::JobProgram job;
  job.transfers = {topology.plan(network::CollectivePattern::kSendRecv, Bytes{1000},
                                 network::Group{.listed = {from, to}})};
  RunConfig config;
  config.training.slow_links = {{.kind = kind, .gpu = 1, .slowdown = 4}};
  const auto slow = slow_links(config, topology, job);
  if (!slow) return tl::unexpected<Errors>(slow.error());
  std::vector<LinkId> links;
  for (const network::SlowLink& link : *slow) links.push_back(link.link);
  return links;
}

// The flow from GPU 1 takes the second up-link, that from GPU 0 the first.
TEST(SlowLinks, ALeafIsAllOfItsUplinks) {
  const hardware::ClusterSpec cluster = two_leaves(hardware::FlowPlacement::kPlanned);
  const network::Topology topology(cluster);
  const std::vector<LinkId> all{
      topology.leaf(0, Direction::kOut, 0), topology.leaf(0, Direction::kOut, 1),
      topology.leaf(0, Direction::kIn, 0), topology.leaf(0, Direction::kIn, 1)};
  for (const std::uint32_t from : {0U, 1U}) {
    const auto links = must(slowed(LinkFault::Kind::kLeaf, cluster, from, 4));
    EXPECT_EQ(links, all);
  }
  EXPECT_EQ(slowed(LinkFault::Kind::kLeaf, two_leaves(hardware::FlowPlacement::kSpread), 1, 4)
                .value().size(), 2U);
  EXPECT_FALSE(slowed(LinkFault::Kind::kLeaf, cluster, 4, 6).has_value());  // of another leaf
}

TEST(SlowLinks, APortIsThatToItsPairToo) {
  hardware::ClusterSpec cluster = two_leaves(hardware::FlowPlacement::kSpread);
  cluster.gpus_per_node = 4;
  cluster.node.kind = hardware::NodeLink::kPairs;
  cluster.node.pair_bandwidth = {200e9};
  const network::Topology topology(cluster);
  const std::vector<LinkId> all{topology.port(1, Direction::kOut),
                                topology.pair_port(1, Direction::kOut),
                                topology.port(1, Direction::kIn),
                                topology.pair_port(1, Direction::kIn)};
  for (const std::uint32_t to : {0U, 2U}) {
    EXPECT_EQ(slowed(LinkFault::Kind::kPort, cluster, 1, to).value(), all);
  }
}

}  // namespace
}  // namespace bubblesim::run
