// Workloads of co-location pairs: reading them, and the programs that they become.
#include "sim/validate/pair_workload.hpp"

#include <gtest/gtest.h>

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

TEST(PairWorkload, AnUnknownNameIsAFaultThatNamesTheKnown) {
  const auto all = read_workloads(kConfigFolder + "/workloads");
  ASSERT_TRUE(all);
  EXPECT_TRUE(find_workload(*all, WorkloadRole::kTraining, "BERT, batch 32"));
  EXPECT_TRUE(find_workload(*all, WorkloadRole::kTraining, "resnet-50 (batch 64)"));
  const auto unknown = find_workload(*all, WorkloadRole::kTraining, "PointNet, batch 129");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("did you mean \"PointNet, batch 128\""),
            std::string::npos);
}

TEST(PairWorkload, ANameIsNoPrefixOfAnotherBatchSize) {
  const auto all = read_workloads(kConfigFolder + "/workloads");
  ASSERT_TRUE(all);
  EXPECT_FALSE(find_workload(*all, WorkloadRole::kTraining, "PointNet, batch 1280"));
  EXPECT_FALSE(find_workload(*all, WorkloadRole::kInference, "ResNet-152 batch 16 (TensorRT)"));
  EXPECT_TRUE(find_workload(*all, WorkloadRole::kInference, "two loops, ResNet-152 batch 1 (RT)"));
}

// gpt2-large at batch 16 does 16 times the work of batch 1, in as many kernels.
TEST(PairWorkload, AModelIsRunAtTheBatchSizeThatIsAskedFor) {
  const auto all = read_workloads(kConfigFolder + "/workloads");
  ASSERT_TRUE(all);
  const auto one = find_workload(*all, WorkloadRole::kTraining, "GPT-2 large, batch size 1");
  const auto more = find_workload(*all, WorkloadRole::kTraining, "GPT-2 large, batch 16");
  ASSERT_TRUE(one && more);
  EXPECT_EQ(one->batch, 0u) << "its own";
  EXPECT_EQ(more->batch, 16u);
  EXPECT_EQ(more->workload, one->workload);
  const auto small = pair_program(*one->workload, pair_machine(), one->batch);
  const auto large = pair_program(*more->workload, pair_machine(), more->batch);
  ASSERT_TRUE(small && large);
  EXPECT_EQ(large->ops.size(), small->ops.size());
  const auto total = [](const program::Program& program) {
    Duration sum{};
    for (const auto& op : program.ops) sum += op.duration;
    return sum;
  };
  EXPECT_GT(total(*large), total(*small) * 3);
}

TEST(PairWorkload, ABatchSizeIsReadHoweverItIsWritten) {
  const auto all = read_workloads(kConfigFolder + "/workloads");
  ASSERT_TRUE(all);
  for (const char* name : {"ResNet-50, batch size 16", "ResNet50 bs16", "resnet50 (batch 16)",
                           "BERT-base b=16", "ResNet50, batch-size 16"}) {
    const auto found = find_workload(*all, WorkloadRole::kTraining, name);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->batch, 16U) << name;
    EXPECT_EQ(found->refused, "") << name;
  }
  const auto own = find_workload(*all, WorkloadRole::kTraining, "PointNet bs=128");
  ASSERT_TRUE(own);
  EXPECT_EQ(own->workload->id, "train-pointnet");
  EXPECT_EQ(own->batch, 0U) << "its own";
}

PairWorkload named(const char* name, const char* kernels = R"("kernels": [{"name": "a"}])",
                   const char* more = "") {
  const std::string text = std::string(R"({"names": [")") + name + R"("], "role": "training",
      "source": "a test", "precision": "fp32", "launch_gap": "3us", "launch_call": "2us", )" +
      more + R"("steps": [{)" + kernels + "}]}";
  auto out = parse_workload(text, "w");
  EXPECT_TRUE(out) << out.error().front().text();
  return out ? *out : PairWorkload{};
}

constexpr const char* kSized = R"("kernels": [{"name": "a"}], "each_sample": true)";

TEST(PairWorkload, WorkloadsMayWriteTheirBatchSizeOtherwise) {
  for (const char* name : {"net, batch size 16", "net, batch=16", "net bs16"}) {
    const std::vector<PairWorkload> all{named(name)};
    for (const char* asked : {"net, batch 16", "two loops, net (batch size 16)"}) {
      EXPECT_TRUE(find_workload(all, WorkloadRole::kTraining, asked)) << name << ": " << asked;
    }
    EXPECT_FALSE(find_workload(all, WorkloadRole::kTraining, "net, batch 8")) << name;
  }
}

TEST(PairWorkload, AtAnotherBatchSizeAWorkloadRunsOrIsRefused) {
  const auto found = [](PairWorkload workload, const char* name) {
    const std::vector<PairWorkload> all{std::move(workload)};
    const auto out = find_workload(all, WorkloadRole::kTraining, name);
    EXPECT_TRUE(out) << name;
    return out ? std::pair(out->batch, out->refused) : std::pair(0U, std::string("none"));
  };
  const std::pair<std::uint32_t, std::string> own{0, ""}, at_8{8, ""};
  EXPECT_EQ(found(named("closed loops, net"), "closed loops, net"), own);
  EXPECT_EQ(found(named("closed loops, net", kSized), "closed loops, net, batch 8"), at_8);
  EXPECT_EQ(found(named("net", kSized), "net (batch 8)"), at_8);
  EXPECT_EQ(found(named("closed loops, net", kSized, R"("batch": 8,)"), "closed loops, net bs8"),
            own);
  EXPECT_EQ(found(named("closed loops, net"), "closed loops, net, batch 8").second,
            "w does not run at batch 8: its steps are those of one batch size, which it does not "
            "say");
  EXPECT_NE(found(named("closed loops, net"), "closed loops, net, a batch of 8").second, "");
  EXPECT_NE(found(named("closed loops, net"), "closed loops, net bs8 and bs4").second, "");
  EXPECT_NE(found(named("closed loops, net", kSized), "closed loops, net bs4097").second, "");
}

TEST(PairWorkload, AModelSaysTheBatchSizeOfItsWorkload) {
  const auto all = read_workloads(kConfigFolder + "/workloads");
  ASSERT_TRUE(all);
  const auto decode = find_workload(*all, WorkloadRole::kInference, "decode");
  ASSERT_TRUE(decode);
  EXPECT_EQ(refuse_batch(*decode->workload, 8), "");
  EXPECT_EQ(refuse_batch(*decode->workload, 16),
            "infer-llama-decode does not run at batch 16: its steps are those of batch 8");
}

// One that can run as it is asked for is preferred to one that cannot.
TEST(PairWorkload, OnlyTheLastChoiceIsRefused) {
  const std::vector<PairWorkload> all{named("closed loops, net"), named("net", kSized),
                                      named("net, batch 64", kSized, R"("batch": 64,)")};
  const auto found = find_workload(all, WorkloadRole::kTraining, "closed loops, net, batch 8");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->refused, "");
  EXPECT_EQ(found->workload, &all[2]);
}

}  // namespace
}  // namespace bubblesim::validate
