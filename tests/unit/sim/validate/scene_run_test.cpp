// Clients on one GPU, with sums by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/synth/program_writer.hpp"
#include "sim/validate/pair_program.hpp"
#include "sim/validate/pair_workload.hpp"
#include "sim/validate/scene_run.hpp"
#include "tests/fault.hpp"
#include "tests/folders.hpp"

namespace bubblesim::validate {
namespace {

// Without launch costs of its own, so that kernels alone make time pass.
hardware::GpuSpec plain_gpu() {
  hardware::GpuSpec spec;
  spec.sm_count = 4;
  spec.time_slice = Duration{1'000'000};
  return spec;
}

// `kernels` of `each`, then the host waits.
program::Program program(const hardware::GpuSpec& gpu, int kernels, Duration each) {
  synth::ProgramWriter writer(0, gpu);
  writer.begin_iteration();
  program::KernelProfile profile;
  profile.residency = {.warps = 4, .blocks_per_sm = 2};
  synth::OpDraft draft;
  draft.profile = writer.add_profile(profile, {});
  draft.duration = each;
  for (int i = 0; i < kernels; ++i) writer.launch(draft, {}, {});
  writer.wait_for_device();
  return writer.finish();
}

SceneClient service_of(const program::Program& work, std::size_t requests) {
  SceneClient out;
  out.name = "service";
  out.role = policy::Role::kOnline;
  out.program = &work;
  out.loops = false;
  out.arrivals.assign(requests, kSimStart);
  return out;
}

class SceneRun : public ::testing::Test {
 protected:
  /// The figures of a job that loops over `kernels` of `each`.
  ClientFigures run_job(int kernels, Duration each, Duration length, SceneClient client = {}) {
    const program::Program work = program(gpu, kernels, each);
    client.name = "job";
    client.program = &work;
    SceneSetup setup;
    setup.gpu = &gpu;
    setup.clients = {client};
    setup.length = length;
    const auto figures = run_scene(setup);
    EXPECT_TRUE(figures);
    return figures ? figures->front() : ClientFigures{};
  }
  const hardware::GpuSpec gpu = plain_gpu();
};

TEST_F(SceneRun, APassAloneTakesItsKernels) {
  const auto solo = must(solo_latency(gpu, program(gpu, 3, Duration{1000})));
  EXPECT_EQ(solo, Duration{3000});
}

/// At once, of 2 x 1,000 ns each.
struct ThreeRequests {
  ThreeRequests() {
    setup.gpu = &gpu;
    setup.clients = {service_of(work, 3)};
    setup.length = Duration{6000};
  }

  hardware::GpuSpec gpu = plain_gpu();
  program::Program work = program(gpu, 2, Duration{1000});
  SceneSetup setup;
};

TEST_F(SceneRun, LatencyIsServiceTimeWithoutTheQueue) {
  // Each takes 2,000, the last ends at 6,000.
  ThreeRequests scene;
  const auto figures = must(run_scene(scene.setup));
  EXPECT_EQ(figures.front().latencies, std::vector<Duration>(3, Duration{2000}));
  EXPECT_DOUBLE_EQ(figures.front().percentile_ms(99), 0.002);
  EXPECT_DOUBLE_EQ(figures.front().mean_ms(), 0.002);
}

TEST_F(SceneRun, PassesThatEndBeforeTheMeasuredSpanAreNotCounted) {
  // They end at 2,000, 4,000 and 6,000 ns; from 4,000 on there are two, 2,000 ns apart.
  ThreeRequests scene;
  scene.setup.from = Duration{4000};
  const auto figures = must(run_scene(scene.setup));
  EXPECT_EQ(figures.front().passes, 2u);
  EXPECT_EQ(figures.front().latencies.size(), 2u);
  EXPECT_DOUBLE_EQ(figures.front().per_s, 1 / 2e-6);
  EXPECT_EQ(figures.front().ends.size(), 3u) << "rates over time are of all passes";
}

TEST_F(SceneRun, RequestsThatDoNotEndWithinTheRunAreNotServed) {
  const auto work = program(gpu, 2, Duration{1000});
  SceneSetup setup;
  setup.gpu = &gpu;
  setup.clients = {service_of(work, 3)};
  setup.length = Duration{5999};
  const auto figures = must(run_scene(setup));
  EXPECT_EQ(figures.front().passes, 2u);
}

TEST_F(SceneRun, ALoopsRateIsOfWholePasses) {
  // Iterations of 4 x 1,000 ns: ends at 4, 8, ... us; the 101 us hold 25.
  const auto figures = run_job(4, Duration{1000}, Duration{101'000});
  EXPECT_EQ(figures.passes, 25u);
  EXPECT_NEAR(figures.per_s, 1e9 / 4000, 1e-3);
}

TEST_F(SceneRun, ALoopPausesAfterEachEpoch) {
  // Two passes of 1 us, then 8 us of pause: ends at 1, 2, 11, 12, 21, 22 us.
  SceneClient job;
  job.epoch = 2, job.pause = Duration{8000};
  const auto figures = run_job(1, Duration{1000}, Duration{22'500}, job);
  EXPECT_EQ(figures.passes, 6u);
  EXPECT_NEAR(figures.per_s, 5 / 21e-6, 1);
  EXPECT_EQ(figures.latencies, std::vector<Duration>(6, Duration{1000}))
      << "a pause is of no pass";
}

TEST_F(SceneRun, ADataLoaderBoundsALoop) {
  // Passes of 1 us, an input each 3 us, the first of an epoch ready: starts at 0, 3, 6; the pause
  // of 10 us: 17, 20, 23.
  SceneClient job;
  job.epoch = 3, job.pause = Duration{10'000}, job.feed = Duration{3000};
  const auto figures = run_job(1, Duration{1000}, Duration{24'500}, job);
  EXPECT_EQ(figures.passes, 6u);
  EXPECT_NEAR(figures.per_s, 5 / 23e-6, 1);
}

TEST_F(SceneRun, ADataLoaderGetsAheadOfASlowLoop) {
  // Passes of 5 us, 1 us between them, an input each 3 us: no pass waits for its input.
  SceneClient job;
  job.epoch = 100, job.host_gap = Duration{1000}, job.feed = Duration{3000};
  const auto figures = run_job(1, Duration{5000}, Duration{60'500}, job);
  EXPECT_EQ(figures.passes, 10u);
  EXPECT_EQ(figures.latencies, std::vector<Duration>(10, Duration{5000}));
}

// Workloads of co-location pairs: reading them, and the programs that they become.

constexpr const char* kJob = R"({
  "names": ["job"], "role": "training", "source": "a test", "precision": "fp32",
  "launch_gap": "3us", "launch_call": "2us",
  "steps": [
    {"host": "1ms"},
    {"repeat": 2, "steps": [{"kernels": [
      {"name": "a", "count": 3, "time": "10us", "blocks": 8},
      {"name": "b", "kind": "gemm", "m": 4, "n": 5, "k": 6}]}]},
    {"sync": true}]})";

PairMachine pair_machine() {
  PairMachine out;
  out.gpu = *hardware::find_gpu_spec("a100-40gb", kDeviceFolder);
  out.efficiency = *model::find_efficiency("a100-40gb", kConfigFolder + "/efficiency");
  out.models = kConfigFolder + "/models";
  return out;
}

TEST(PairWorkload, ProductsCountTheirWork) {
  const auto job = must(parse_workload(kJob, "job.json"));
  const auto& again = std::get<RepeatStep>(job.steps[1]);
  const auto& kernels = std::get<KernelStep>(again.steps[0]).kernels;
  EXPECT_EQ(kernels[1].work.flops, 2.0 * 4 * 5 * 6);
  EXPECT_EQ(kernels[1].work.bytes, 4.0 * (4 * 6 + 6 * 5 + 4 * 5));
}

TEST(PairWorkload, RepeatsAndCountsBecomeLaunches) {
  const auto job = must(parse_workload(kJob, "job.json"));
  const auto program = must(pair_program(job, pair_machine()));
  EXPECT_EQ(program.ops.size(), 2u * (3 + 1));
  EXPECT_EQ(program.ops[0].duration, Duration{10'000});
}

TEST(PairWorkload, AGivenLaunchLeavesTheTimeComputed) {
  std::string text = kJob;
  const std::string product = R"("m": 4, "n": 5, "k": 6)";
  text.insert(text.find(product), R"("blocks": 7, "threads": 512, )");
  const auto as_computed = parse_workload(kJob, "job.json");
  const auto as_given = parse_workload(text, "job.json");
  ASSERT_TRUE(as_computed && as_given);
  const auto computed = pair_program(*as_computed, pair_machine());
  const auto given = pair_program(*as_given, pair_machine());
  ASSERT_TRUE(computed && given);
  EXPECT_EQ(given->ops[3].duration, computed->ops[3].duration);
  const program::KernelProfile& profile = given->profiles[given->ops[3].profile];
  EXPECT_EQ(profile.blocks, 7u);
  EXPECT_EQ(profile.residency.warps, 16u);
}

TEST(PairWorkload, StretchingScalesDeviceAndHost) {
  const auto job = parse_workload(kJob, "job.json");
  const auto program = must(pair_program(*job, pair_machine()));
  const auto longer = stretched(program, 1.5);
  EXPECT_EQ(longer.ops[0].duration, Duration{15'000});
  EXPECT_EQ(longer.threads[0].steps[1].think.duration(), Duration{1'500'000});
}

TEST(PairWorkload, FaultsNameTheStep) {
  std::string text = kJob;
  text.replace(text.find("\"host\""), 6, "\"hots\"");
  EXPECT_NE(error_of(parse_workload(text, "job.json")).front().text().find("/steps/0"),
            std::string::npos);
}

TEST(PairWorkload, ShippedOnesAllBecomePrograms) {
  const auto all = must(read_workloads(kConfigFolder + "/workloads"));
  const PairMachine on = pair_machine();
  for (const PairWorkload& workload : all) {
    const auto program = pair_program(workload, on, 1);  // for those whose batch is the table's
    ASSERT_TRUE(program) << program.error().front().text();
    EXPECT_GT(program->ops.size(), 30u) << workload.id;
  }
}

// gpt2-large at batch 16 does 16 times the work of batch 1, in as many kernels.
TEST(PairWorkload, AModelIsRunAtTheBatchSizeThatIsAskedFor) {
  const auto all = must(read_workloads(kConfigFolder + "/workloads"));
  const auto gpt = std::ranges::find(all, "train-gpt2-large", &PairWorkload::id);
  ASSERT_NE(gpt, all.end());
  const auto small = pair_program(*gpt, pair_machine(), 1);
  const auto large = pair_program(*gpt, pair_machine(), 16);
  ASSERT_TRUE(small && large);
  EXPECT_EQ(large->ops.size(), small->ops.size());
  const auto total = [](const program::Program& program) {
    Duration sum{};
    for (const auto& op : program.ops) sum += op.duration;
    return sum;
  };
  EXPECT_GT(total(*large), total(*small) * 3);
}

TEST(PairWorkload, SaysWhichBatchSizesItsModelsHave) {
  std::string text = kJob;
  const auto job = must(parse_workload(text, "job.json"));
  EXPECT_FALSE(is_resizable(job.steps));
  const std::string kernels = "\"kernels\": [";
  text.insert(text.find(kernels), "\"each_sample\": true, ");
  const auto sized = must(parse_workload(text, "job.json"));
  EXPECT_TRUE(is_resizable(sized.steps)) << "within a step that is repeated";
  const auto all = must(read_workloads(kConfigFolder + "/workloads"));
  const auto decode = std::ranges::find(all, "infer-llama-decode", &PairWorkload::id);
  ASSERT_NE(decode, all.end());
  EXPECT_EQ(model_batches(decode->steps), std::vector<std::uint32_t>{8});
}

// When requests come, by hand.

TEST(PairArrivals, ArrivalsAreOneInEachPartOfTheRun) {
  // Load 0.5 of 1 ms over 10 ms: 5 requests, one in each 2 ms.
  const auto arrivals = pair_arrivals({}, Duration{1'000'000}, Duration{10'000'000});
  ASSERT_EQ(arrivals.size(), 5u);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    EXPECT_EQ((arrivals[i] - kSimStart) / Duration{2'000'000}, static_cast<std::int64_t>(i));
  }
}

// One in 2 ms of 16 ms; spans of 4 ms hold two each, which come together within them.
TEST(PairArrivals, ArrivalsOfOneSpanComeTogether) {
  const auto arrivals = pair_arrivals({.burst = Duration{4'000'000}}, Duration{1'000'000},
                                      Duration{16'000'000});
  ASSERT_EQ(arrivals.size(), 8u);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    EXPECT_EQ(arrivals[i], arrivals[i / 2 * 2]);
    EXPECT_EQ((arrivals[i] - kSimStart) / Duration{4'000'000}, static_cast<std::int64_t>(i / 2));
  }
}

// MIG instances and constants of sharing, by hand.

TEST(MigInstance, HasItsSlicesOfSmsPeakAndBandwidth) {
  PairMachine whole;
  whole.gpu.sm_count = 108;
  whole.gpu.dram_bandwidth.value = 1600;
  whole.gpu.mig = {7, 8, 14};
  whole.efficiency.peak_flops.fill(108);
  const auto three = mig_instance(whole, 3);  // 3g has 4 of 8 memory slices
  ASSERT_TRUE(three);
  EXPECT_EQ(three->gpu.sm_count, 42u);
  EXPECT_DOUBLE_EQ(three->gpu.dram_bandwidth.value, 800);
  EXPECT_DOUBLE_EQ(three->efficiency.peak_flops[0], 42);
  EXPECT_FALSE(mig_instance(whole, 8));
  EXPECT_FALSE(mig_instance(whole, 6)) << "NVIDIA has no profile of 5 or 6 slices";
  EXPECT_NE(error_of(mig_instance(whole, 5)).message.find("those of 1, 2, 3, 4, 7"),
            std::string::npos);
}

TEST(PutConstant, ChangesTheGpuOrNamesTheNearest) {
  hardware::GpuSpec gpu;
  EXPECT_TRUE(put_constant(gpu, "time_slice", 1024.4));
  EXPECT_EQ(gpu.time_slice, Duration{1024});
  EXPECT_TRUE(put_constant(gpu, "contention/issue_shares", 0.5));
  EXPECT_EQ(gpu.contention.memory_kernel_issue_share, 0.5);
  const auto unknown = error_of(put_constant(gpu, "time_slices", 1));
  EXPECT_NE(unknown.message.find("did you mean \"time_slice\"?"), std::string::npos);
}

}  // namespace
}  // namespace bubblesim::validate
