// Jobs by the names of their parts, and changes to plans.
#include "sim/synth/find_job.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include "sim/synth/plan_file.hpp"
#include "tests/fault.hpp"

namespace bubblesim::synth {
namespace {

using testing::HasSubstr;

const std::string kConfigs = std::string(BUBBLESIM_SOURCE_DIR) + "/configs";
const std::string kPlans = kConfigs + "/plans";

JobNames names(const std::string& model, const std::string& plan, const std::string& cluster) {
  JobNames out;
  out.model = model;
  out.plan = plan;
  out.cluster = cluster;
  return out;
}

TEST(PlanChange, IsAKeyWithOrWithoutASlashAndAValue) {
  EXPECT_EQ(parse_plan_change("data=8")->pointer, "/data");
  EXPECT_EQ(parse_plan_change("/gradients/bucket=50MiB")->pointer, "/gradients/bucket");
  EXPECT_EQ(parse_plan_change("schedule_csv=a=b.csv")->value, "a=b.csv");
  for (const char* text : {"data", "=8", "/=8", "a//b=8", "a/=8", ""}) {
    EXPECT_FALSE(parse_plan_change(text)) << text;
  }
}

TEST(FindPlan, ChangesReplaceKeysAndAddNewOnes) {
  const auto plan = must(find_plan("ddp-4", kPlans,
                                   {{"/data", "2"}, {"/gradients/bucket", "50MiB"},
                                    {"/schedule", "gpipe"}, {"/sequence_parallel", "true"}}));
  EXPECT_EQ(plan.data, 2U);
  EXPECT_EQ(plan.global_batch, 32U);
  EXPECT_EQ(plan.gradients.bucket, Bytes{50ULL << 20U});
  EXPECT_EQ(plan.schedule, "gpipe");
  EXPECT_TRUE(plan.sequence_parallel);
}

TEST(FindPlan, AChangedPlanIsCheckedLikeAFile) {
  const auto plan = error_of(find_plan("ddp-4", kPlans, {{"/dat", "2"}, {"/micro_batch", "0"}}));
  EXPECT_EQ(plan.size(), 2U);
  EXPECT_FALSE(find_plan("ddp-4", kPlans, {{"/data/more", "2"}}));
  EXPECT_FALSE(find_plan("nowhere/plan.json", kPlans, {{"/data", "2"}}));
}

TEST(FindPlan, AChangeThatOverwritesAnEarlierOneIsAFault) {
  EXPECT_EQ(error_of(find_plan("ddp-4", kPlans, {{"/data", "2"}, {"/data", "4"}})).front().text(),
            "--set: /data: found after \"/data\", which it overwrites; expected one of them");
  EXPECT_FALSE(find_plan("ddp-4", kPlans, {{"/gradients/bucket", "50MiB"}, {"/gradients", "{}"}}));
  EXPECT_TRUE(find_plan("ddp-4", kPlans, {{"/gradients", "{}"}, {"/gradients/bucket", "50MiB"}}));
}

TEST(FindJob, TakesTheDeviceOfTheClusterAndTheSoftwareOfThePlan) {
  JobNames wanted = names("gpt2-large", "pp-4-1f1b", "a100-40gb-4");
  wanted.nodes = 3;
  JobRequest request = must(find_job(wanted, kConfigs));
  EXPECT_EQ(request.gpu.name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(request.software.id, "pytorch");
  EXPECT_EQ(request.cluster.nodes, 3U);
  wanted.device = "h100";
  wanted.software = "megatron-lm";
  wanted.folding = Folding::kNothing;
  request = must(find_job(wanted, kConfigs));
  EXPECT_EQ(request.gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(request.software.id, "megatron-lm");
  EXPECT_EQ(request.plan.folding, Folding::kNothing);
}

TEST(FindJob, AHashSeedIsOfClustersWhoseFlowsTakeOne) {
  JobNames wanted = names("gpt2-large", "pp-4-1f1b", "h800-clos-hash");
  wanted.hash_seed = 7;
  const auto request = must(find_job(wanted, kConfigs));
  EXPECT_EQ(request.cluster.tree.hash_seed, 7U);
  wanted.cluster = "h800-clos-planned";
  EXPECT_EQ(error_of(find_job(wanted, kConfigs)).front().text(),
            "h800-clos-planned: /hash_seed: found 7; flows of this cluster take no up-links by "
            "hash (fat_tree/placement)");
}

TEST(FindJob, EveryPartThatIsNotThereIsAFault) {
  const auto request = error_of(find_job(names("gpt2-larg", "pp-4", "a100-40gb"), kConfigs));
  ASSERT_EQ(request.size(), 3U);
  EXPECT_THAT(request[0].message, HasSubstr("did you mean \"gpt2-large\"?"));
}

/// Plans of configs/plans with a model and a cluster that they are meant for.
struct Setting {
  const char* plan;
  const char* model;
  const char* cluster;
};

const Setting kSettings[] = {
    {"ddp-4", "roberta-large", "a100-40gb-4"},
    {"mp-4", "llama2-7b", "a100-40gb-4"},
    {"pp-4-1f1b", "gpt2-large", "a100-40gb-4"},
    {"pp-4-gpipe", "gpt2-large", "a100-40gb-4"},
    {"zb-h1", "gpt2-large", "a100-40gb-4"},
    {"zb-v", "roberta-large", "a100-40gb-4"},
    {"dualpipev", "roberta-large", "a100-40gb-4"},
    {"chimera", "gpt2-large", "a100-40gb-4"},
    {"fsdp-8", "llama2-7b", "dgx-a100-80gb"},
    {"zero1-8", "gpt-1.7b", "dgx-a100-80gb"},
    {"cp-2", "llama2-7b", "dgx-a100-80gb"},
    {"megatron-t8-p8", "gpt-175b", "dgx-a100-80gb"},
    {"moe-ep8", "mixtral-8x7b", "dgx-a100-80gb"},
    {"wide-area-averaging", "roberta-large", "two-regions"},
    {"wide-area-asynchronous", "roberta-large", "two-regions"},
    {"megatron-8192", "gpt-1t", "h100-roce"},
    {"token-split-8", "qwen3-32b", "h100-dgx"},
    {"moe-skewed", "mixtral-8x7b", "dgx-a100-80gb"},
    {"zero3-384", "gpt-18b", "v100-dgx2-24"},
    {"zeropp-384", "gpt-18b", "v100-dgx2-24"},
    {"rollout-apart", "llama3-8b", "dgx-a100-80gb"},
};

TEST(Plans, OfTheFolderCanBePlannedForWhatTheyAreMeantFor) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kPlans)) {
    if (entry.path().extension() == ".json") ++files;
  }
  EXPECT_EQ(files, std::size(kSettings));
  for (const Setting& setting : kSettings) {
    auto request = find_job(names(setting.model, setting.plan, setting.cluster), kConfigs);
    ASSERT_TRUE(request) << request.error().front().text();
    const auto plan = plan_job(*std::move(request));
    EXPECT_TRUE(plan) << setting.plan << ": " << plan.error().front().text();
  }
}

}  // namespace
}  // namespace bubblesim::synth
