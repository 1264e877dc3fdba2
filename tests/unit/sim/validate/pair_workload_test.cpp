// Workloads of co-location pairs: reading them, and the programs that they become.
#include "sim/validate/pair_workload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency_file.hpp"
#include "sim/validate/pair_program.hpp"
#include "tests/folders.hpp"

namespace bubblesim::validate {
namespace {

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
  const auto job = parse_workload(kJob, "job.json");
  ASSERT_TRUE(job) << job.error().front().text();
  const auto& again = std::get<RepeatStep>(job->steps[1]);
  const auto& kernels = std::get<KernelStep>(again.steps[0]).kernels;
  EXPECT_EQ(kernels[1].work.flops, 2.0 * 4 * 5 * 6);
  EXPECT_EQ(kernels[1].work.bytes, 4.0 * (4 * 6 + 6 * 5 + 4 * 5));
}

TEST(PairWorkload, RepeatsAndCountsBecomeLaunches) {
  const auto job = parse_workload(kJob, "job.json");
  ASSERT_TRUE(job);
  const auto program = pair_program(*job, pair_machine());
  ASSERT_TRUE(program) << program.error().front().text();
  EXPECT_EQ(program->ops.size(), 2u * (3 + 1));
  EXPECT_EQ(program->ops[0].duration, Duration{10'000});
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
  const auto program = pair_program(*job, pair_machine());
  ASSERT_TRUE(program);
  const auto longer = stretched(*program, 1.5);
  EXPECT_EQ(longer.ops[0].duration, Duration{15'000});
  EXPECT_EQ(longer.threads[0].steps[1].think.duration(), Duration{1'500'000});
}

TEST(PairWorkload, FaultsNameTheStep) {
  std::string text = kJob;
  text.replace(text.find("\"host\""), 6, "\"hots\"");
  const auto job = parse_workload(text, "job.json");
  ASSERT_FALSE(job);
  EXPECT_NE(job.error().front().text().find("/steps/0"), std::string::npos);
}

TEST(PairWorkload, ShippedOnesAllBecomePrograms) {
  const auto all = read_workloads(kConfigFolder + "/workloads");
  ASSERT_TRUE(all) << all.error().front().text();
  const PairMachine on = pair_machine();
  for (const PairWorkload& workload : *all) {
    const auto program = pair_program(workload, on, 1);  // for those whose batch is the table's
    ASSERT_TRUE(program) << program.error().front().text();
    EXPECT_GT(program->ops.size(), 30u) << workload.id;
  }
}

// gpt2-large at batch 16 does 16 times the work of batch 1, in as many kernels.
TEST(PairWorkload, AModelIsRunAtTheBatchSizeThatIsAskedFor) {
  const auto all = read_workloads(kConfigFolder + "/workloads");
  ASSERT_TRUE(all);
  const auto gpt = std::ranges::find(*all, "train-gpt2-large", &PairWorkload::id);
  ASSERT_NE(gpt, all->end());
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
  const auto job = parse_workload(text, "job.json");
  ASSERT_TRUE(job);
  EXPECT_FALSE(is_resizable(job->steps));
  const std::string kernels = "\"kernels\": [";
  text.insert(text.find(kernels), "\"each_sample\": true, ");
  const auto sized = parse_workload(text, "job.json");
  ASSERT_TRUE(sized) << sized.error().front().text();
  EXPECT_TRUE(is_resizable(sized->steps)) << "within a step that is repeated";
  const auto all = read_workloads(kConfigFolder + "/workloads");
  ASSERT_TRUE(all);
  const auto decode = std::ranges::find(*all, "infer-llama-decode", &PairWorkload::id);
  ASSERT_NE(decode, all->end());
  EXPECT_EQ(model_batches(decode->steps), std::vector<std::uint32_t>{8});
}

}  // namespace
}  // namespace bubblesim::validate
