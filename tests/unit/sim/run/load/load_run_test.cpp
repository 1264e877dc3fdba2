// A config with everything that it names: programs, device, faults of what it names.
#include <gmock/gmock.h>

#include "sim/run/run_inputs.hpp"
#include "sim/run/run_policies.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/workload/trace_builder.hpp"
#include "traces/format/trace_writer.hpp"

namespace bubblesim::run {
namespace {

using testing::HasSubstr;

const std::string kRoot = BUBBLESIM_SOURCE_DIR;

RunConfig config() {
  RunConfig config;
  config.file = "run.json";
  config.name = "test";
  config.iterations = 1;
  config.training.traces = {kRoot + "/traces/samples/training"};
  FillerConfig filler;
  filler.name = "encoder";
  filler.program = TraceProgram{kRoot + "/traces/samples/inference.json.gz"};
  config.fillers.push_back(filler);
  return config;
}

CheckedResult<LoadedRun> load(const RunConfig& config) {
  return load_run(config, kRoot + "/configs/devices");
}

std::string fault(const RunConfig& config) {
  return error_of(load(config)).front().text();
}

TEST(LoadRun, TakesTheDeviceThatTheTraceRecorded) {
  const auto loaded = must(load(config()));
  EXPECT_EQ(loaded.device.name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(loaded.training->ranks.size(), 4U);
  ASSERT_EQ(loaded.fillers.size(), 1U);
  EXPECT_FALSE(loaded.fillers.front()->program.ops.empty());
  EXPECT_TRUE(loaded.recorded_mean_iteration);
}

Duration host_time(const program::Program& program) {
  Duration total{};
  for (const program::ThreadProgram& thread : program.threads)
    for (const program::Step& step : thread.steps)
      total += step.think.duration() + step.cost.duration();
  return total;
}

TEST(LoadRun, HostsAreAsFastAsTheConfigSays) {
  const auto recorded = load(config());
  RunConfig other = config();
  other.training.host_speed = 2;
  std::get<TraceProgram>(other.fillers.front().program).host_speed = 0.5;
  const auto loaded = load(other);
  ASSERT_TRUE(recorded && loaded);
  const auto ratio = [](const program::Program& made, const program::Program& as_recorded) {
    return static_cast<double>(to_ns(host_time(made))) /
           static_cast<double>(to_ns(host_time(as_recorded)));
  };
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(ratio(loaded->training->ranks[i], recorded->training->ranks[i]), 0.5, 1e-3);
  EXPECT_NEAR(ratio(loaded->fillers.front()->program, recorded->fillers.front()->program), 2, 1e-3);
  // What was recorded is no measurement of hosts that are faster.
  EXPECT_FALSE(loaded->recorded_mean_iteration);
}

// On one stream, rank 0 is in collective 1, then in 2; rank 1 in 2, then in 1.
TEST(LoadRun, AJobThatCanNeverGoOnIsRefused) {
  traces::JobTrace job;
  for (const std::uint32_t rank : {0U, 1U}) {
    const auto named = [&](std::uint64_t sequence, std::int64_t start) {
      workload::Launched launched = workload::from_to(start, start + 40);
      launched.name = sequence == 1 ? "ncclFirst" : "ncclSecond";
      return launched;
    };
    const std::uint64_t first = rank == 0 ? 1 : 2;
    workload::TraceBuilder made(rank);
    made.call(traces::HostCallKind::kOther, {.start = 0, .end = 1})
        .collective(named(first, 11), {.sequence = first})
        .collective(named(3 - first, 51), {.sequence = 3 - first});
    job.ranks.push_back(made.trace());
    job.ranks.back().world_size = 2;
  }
  RunConfig other = config();
  other.device = "h100";
  other.training.traces = {testing::TempDir() + "circle.btr"};
  ASSERT_TRUE(traces::format::write_job(other.training.traces.front(), job));
  EXPECT_THAT(fault(other), HasSubstr("a dependency of the program is never met"));
}

TEST(LoadRun, TakesTheDeviceThatTheConfigNames) {
  RunConfig other = config();
  other.device = "h100";
  const auto loaded = must(load(other));
  EXPECT_EQ(loaded.device.name, "NVIDIA H100 80GB HBM3");
  // The filler's own times are those of the A100 that it was recorded on.
  EXPECT_EQ(loaded.counters.count("filler_recorded_on_other_device"), 1U);
  for (const auto& [name, entry] : loaded.counters) {
    if (name == "filler_recorded_on_other_device") { EXPECT_EQ(entry.severity, Severity::kLoss); }
  }
  EXPECT_EQ(load(config())->counters.count("filler_recorded_on_other_device"), 0U);
}

// BERT base has 110 million weights, of 2 bytes each in fp16: 220 MB with nothing else.
TEST(LoadRun, MemoryBelowWhatAModelTakesIsCounted) {
  RunConfig config = run::config();
  synth::InferenceNames names;
  names.model = "bert-base";
  names.efficiency = "a100-40gb";
  names.sequence = 128;
  config.fillers.front().program = names;
  const auto count = [&config] {
    const auto loaded = load(config);
    EXPECT_TRUE(loaded) << loaded.error().front().text();
    return loaded ? loaded->counters.count(kMemoryBelowModel.name) : 0;
  };
  EXPECT_EQ(count(), 0U);  // not said: the model's
  config.fillers.front().memory = Bytes{200'000'000};
  EXPECT_EQ(count(), 1U);
  config.fillers.front().memory = Bytes{40'000'000'000};
  EXPECT_EQ(count(), 0U);
}

TEST(LoadRun, TrainingThatDoesNotFitTheGpuIsRefusedWithDevicesThatWouldDo) {
  RunConfig other = config();
  other.training.memory = Bytes{60'000'000'000};
  const std::string text = fault(other);
  EXPECT_THAT(text, HasSubstr("run.json: /training/memory: rank 0 of training needs 60.0 GB "
                              "(60000000000 bytes); NVIDIA A100-SXM4-40GB has "));
  EXPECT_THAT(text, HasSubstr("devices on which it fits: a100-80gb ("));
  EXPECT_THAT(text, HasSubstr("h100 ("));
  EXPECT_THAT(text, testing::Not(HasSubstr("v100")));
}

// Training that fits no known device; an unknown device; a filler of several ranks.
TEST(LoadRun, WhatCannotBeLoadedIsToldSo) {
  RunConfig large = config(), unknown = config(), ranks = config();
  large.training.memory = Bytes{900'000'000'000};
  EXPECT_THAT(fault(large), HasSubstr("no device of configs/devices has as much"));
  unknown.device = "h10x";
  EXPECT_THAT(fault(unknown), HasSubstr("did you mean \"h100\"?"));
  ranks.fillers.front().program = TraceProgram{kRoot + "/traces/samples/training"};
  EXPECT_THAT(fault(ranks), HasSubstr("found 4 ranks, expected one"));
}

TEST(LoadRun, RanksThatTheJobDoesNotHaveAreFaultsAllAtOnce) {
  RunConfig other = config();
  other.training.stragglers = {{9, 2.0}};
  other.fillers.front().gpus = {{0, 4}};
  const auto loaded = error_of(load(other));
  ASSERT_EQ(loaded.size(), 2U);
  EXPECT_EQ(loaded[0].place, "/training/stragglers/0/rank");
  EXPECT_EQ(loaded[1].place, "/fillers/0/gpus");
}

// The sample's rank 3 by itself: twice as slow is 2 x its kernels, and there is no rank 0.
TEST(LoadRun, AStragglerIsTheRankOfThatNumberWhateverItsPlace) {
  RunConfig other = config();
  other.training.traces = {kRoot + "/traces/samples/training/rank3.json.gz"};
  other.training.stragglers = {{0, 2.0}};
  EXPECT_THAT(fault(other), HasSubstr("/training/stragglers/0/rank: found rank 0; the job has "
                                      "rank 3, on GPU 0"));
  other.training.stragglers = {{3, 2.0}};
  const auto loaded = must(load(other));
  const program::Program& rank = loaded.training->ranks.front();
  EXPECT_EQ(rank.rank, 3U);
  EXPECT_EQ(perturbation_of(loaded.config.training, rank.rank).slowdown, 2);
}

RunConfig synthesised(const std::string& plan) {
  RunConfig made = config();
  made.training.traces.clear();
  made.training.synth.emplace();
  made.training.synth->model = "roberta-large";
  made.training.synth->plan = plan;
  made.training.synth->cluster = "a100-40gb-4";
  return made;
}

TEST(LoadRun, ASynthesisedJobTakesDeviceBatchAndMemoryFromClusterAndPlan) {
  const auto loaded = must(load(synthesised("pp-4-1f1b")));
  EXPECT_EQ(loaded.device.name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(loaded.training->ranks.size(), 4U);
  EXPECT_EQ(loaded.samples_per_iteration, 32);
  EXPECT_FALSE(loaded.recorded_mean_iteration);
  ASSERT_EQ(loaded.rank_memory.size(), 4U);
  // The first stage keeps activations of four micro-batches, the last of one.
  EXPECT_GT(loaded.rank_memory.front()->value, loaded.rank_memory.back()->value);
  EXPECT_LT(loaded.rank_memory.front()->value, loaded.device.memory.value);
}

TEST(LoadRun, PowerIsRefusedWithTheRangesOfTheDevice) {
  RunConfig limited = synthesised("pp-4-1f1b");
  limited.power.emplace();
  limited.power->clock_mhz = 0;
  limited.power->cap_w = 1e7;
  const auto loaded = error_of(load(limited));
  ASSERT_EQ(loaded.size(), 2U);
  EXPECT_EQ(loaded[0].message,
            "found 0; expected 855 to 1410 MHz of NVIDIA A100-SXM4-40GB");
  EXPECT_THAT(loaded[1].message, HasSubstr("expected 54 to 400 W, idle to the board's"));
}

TEST(LoadRun, ABudgetIsOfANodeThatIsKnownAndSimulatedAsAWhole) {
  RunConfig made = synthesised("pp-4-1f1b");
  made.power.emplace().node_cap_w = 1000;
  EXPECT_TRUE(load(made));
  made.power->node_cap_w = 100;
  EXPECT_EQ(fault(made), "run.json: /power/node_cap_w: found 100; expected 216 to 1600 W, idle to "
                         "the boards' limit, of the 4 GPUs of a node");
  RunConfig folded = synthesised("ddp-4");
  folded.power = made.power;
  EXPECT_THAT(fault(folded),
              HasSubstr("a job with folded ranks; expected \"folding\": \"nothing\""));
  RunConfig recorded = config();
  recorded.power = made.power;
  EXPECT_THAT(fault(recorded), HasSubstr("of whose nodes nothing is known; expected \"synth\""));
}

/// A plan that writes checkpoints to the host every 10 iterations.
RunConfig checkpointed() {
  RunConfig made = synthesised("");
  synth::PlanSpec plan;
  plan.data = 4;
  plan.global_batch = 32;
  plan.micro_batch = 8;
  plan.host.checkpoint_every = 10;
  made.training.synth->plan = plan;
  made.training.faults = {{.at = std::chrono::seconds(1)}};
  return made;
}

TEST(LoadRun, ARestartGoesBackToTheCheckpointsThatThePlanWrites) {
  RunConfig made = checkpointed();
  const auto loaded = must(load(made));
  EXPECT_EQ(scale_of(loaded, {}, {}).checkpoint_every, 10U);
  made.training.checkpoint_every = 10;
  EXPECT_TRUE(load(made));
  made.training.checkpoint_every = 1;
  EXPECT_EQ(fault(made),
            "run.json: /training/checkpoint_every: found 1; the plan writes a checkpoint every 10 "
            "iterations (host/checkpoint_every); expected that, or no such key");
}

TEST(LoadRun, FoldedRanksAreCountedAndUnfoldedOnesThere) {
  RunConfig made = synthesised("ddp-4");
  const auto folded = must(load(made));
  EXPECT_EQ(folded.training->ranks.size(), 1U);
  EXPECT_EQ(folded.fold, 4U);
  EXPECT_EQ(folded.world_size, 4U);
  EXPECT_EQ(folded.counters.count("synth_ranks_folded"), 3U);
  made.training.synth->folding = synth::Folding::kNothing;
  const auto whole = must(load(made));
  EXPECT_EQ(whole.training->ranks.size(), 4U);
  EXPECT_EQ(whole.fold, 1U);
}

/// A server over two GPUs.
void add_server(RunConfig& made) {
  synth::InferenceNames names;
  names.model = "llama-68m";
  synth::EngineNames& engine = names.engine.emplace();
  engine.settings.scheduler.max_model_len = 512;
  engine.settings.cache = synth::CacheBlocks{100};
  engine.settings.tensor = 2;
  engine.requests.lengths =
      workload::DrawnLengths{workload::FixedLength{60}, workload::FixedLength{20}, {}};
  made.fillers.front().program = names;
}

TEST(LoadRun, AServerThatSwapsHasRoomForABlockOnTheHost) {
  RunConfig made = synthesised("ddp-4");
  made.training.synth->folding = synth::Folding::kNothing;
  add_server(made);
  auto& engine = *std::get<synth::InferenceNames>(made.fillers.front().program).engine;
  engine.settings.scheduler.preemption = serving::CachePreemption::kSwap;
  engine.settings.host_cache = Bytes{1000};
  EXPECT_THAT(fault(made), HasSubstr("\"host_cache\" of 1000 bytes holds no block of "));
  engine.settings.host_cache = Bytes{1'000'000'000};
  EXPECT_TRUE(load(made));
}

TEST(LoadRun, GpusThatExchangeNeedLinksThatAreKnownAndNobodyFolded) {
  RunConfig recorded = config();
  add_server(recorded);
  EXPECT_THAT(fault(recorded),
              HasSubstr("/fillers/0/program/engine/tensor_parallel: found GPUs that exchange "
                        "beside a recorded job"));
  RunConfig made = synthesised("ddp-4");
  add_server(made);
  const auto folded = error_of(load(made));
  EXPECT_THAT(folded.back().text(),
              HasSubstr("a job with folded ranks; expected \"folding\""));
  made.training.synth->folding = synth::Folding::kNothing;
  const auto loaded = must(load(made));
  EXPECT_EQ(loaded.server(0)->gpus(), 2U);
  EXPECT_EQ((*loaded.topology)->spec().gpus_per_node, 4U);
}

TEST(LoadRun, TheConfigsDeviceStandsInForTheClusters) {
  RunConfig made = synthesised("ddp-4");
  made.device = "h100";
  const auto loaded = must(load(made));
  EXPECT_EQ(loaded.device.name, "NVIDIA H100 80GB HBM3");
}

TEST(LoadRun, PartsThatAreNotThereAreAllNamedWithTheNearest) {
  RunConfig made = synthesised("ddp4");
  made.training.synth->model = "roberta-larg";
  const auto loaded = error_of(load(made));
  ASSERT_EQ(loaded.size(), 2U);
  EXPECT_THAT(loaded[0].text(), HasSubstr("did you mean \"roberta-large\"?"));
  EXPECT_THAT(loaded[1].text(), HasSubstr("did you mean \"ddp-4\"?"));
}

TEST(LoadRun, FaultsOfAPlanInTheConfigAreAtItsPlace) {
  RunConfig made = synthesised("");
  synth::PlanSpec plan;
  plan.data = 4;
  plan.global_batch = 30;
  made.training.synth->plan = plan;
  const auto loaded = error_of(load(made));
  EXPECT_EQ(loaded.front().file, "run.json");
  EXPECT_EQ(loaded.front().place, "/training/synth/plan/global_batch");
  EXPECT_THAT(loaded.front().message, HasSubstr("nearest: 28 or 32"));
}

TEST(LoadRun, AModelThatDoesNotFitIsRefusedWithWhatWould) {
  RunConfig made = synthesised("ddp-4");
  made.training.synth->model = "llama2-7b";
  EXPECT_THAT(fault(made), HasSubstr("nearest that fits"));
}

}  // namespace
}  // namespace bubblesim::run
