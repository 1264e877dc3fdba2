// Rows of both forms of table as jobs.
#include "sim/validate/training_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bubblesim::validate {
namespace {

using testing::HasSubstr;

constexpr const char* kTimed =
    "role,num_gpus,global_batch,micro_batch,hidden_size,attention_heads,num_layers,"
    "sequence_length,tensor_parallelism,data_parallelism,pipeline_parallelism,iteration_time_ms\n";
constexpr const char* kPublished =
    "role,source,model,hidden_size,layers,attention_heads,sequence_length,vocabulary,gpu,num_gpus,"
    "tensor_parallelism,pipeline_parallelism,virtual_stages,micro_batch,global_batch,recompute,"
    "tflops_per_gpu,seconds_per_iteration\n";

TableSetting setting() {
  TableSetting out;
  out.cluster = "own";
  out.plan.software = "megatron-lm";
  return out;
}

Result<std::vector<TrainingRow>> rows_of(const std::string& text, const TableSetting& with) {
  auto table = CsvTable::parse(text, "t.csv");
  if (!table) return tl::make_unexpected(table.error());
  return training_rows(*table, with);
}

std::vector<TrainingRow> rows(const std::string& text, const TableSetting& with = setting()) {
  auto out = rows_of(text, with);
  EXPECT_TRUE(out) << out.error().text();
  return out ? *out : std::vector<TrainingRow>(8);
}

TEST(TrainingRows, AnIterationTimeIsInMilliseconds) {
  const auto all = rows(std::string(kTimed) + "fit,8,64,2,1024,16,24,2048,2,2,2,1500\n");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].role, Role::kFit);
  EXPECT_EQ(all[0].seconds, 1.5);
  EXPECT_EQ(all[0].plan.world_size(), 8U);
  EXPECT_EQ(all[0].plan.micro_batches(), 16U);
  EXPECT_EQ(all[0].cluster, "own");
  EXPECT_FALSE(all[0].chunks_unknown);
  EXPECT_TRUE(all[0].unpredictable.empty());
}

TEST(TrainingRows, ReplicasOfAPublishedRunFollowFromItsGpus) {
  const auto all = rows(std::string(kPublished) +
                        "judge,S,G,1024,24,16,2048,51200,A100,64,8,4,,,512,full,140,\n"
                        "judge,S,G,1024,24,16,2048,51200,A100,64,8,4,3,1,512,none,,2\n");
  EXPECT_EQ(all[0].plan.data, 2U);
  EXPECT_EQ(all[0].plan.micro_batch, 0U);
  EXPECT_TRUE(all[0].chunks_unknown);
  EXPECT_EQ(all[0].tflops_per_gpu, 140);
  EXPECT_FALSE(all[1].chunks_unknown);
  EXPECT_EQ(all[1].plan.schedule, "interleaved");
  EXPECT_EQ(all[1].seconds, 2);
}

TEST(TrainingRows, WhatCannotBePredictedSaysWhy) {
  const auto all = rows(std::string(kPublished) +
                        "judge,S,G,1024,24,16,2048,51200,A100,60,8,4,,,512,full,140,\n"
                        "judge,S,G,1024,24,16,2048,51200,A100,64,8,4,,,512,full,,\n");
  EXPECT_THAT(all[0].unpredictable, HasSubstr("60 GPUs are no multiple of 32"));
  EXPECT_THAT(all[1].unpredictable, HasSubstr("no measurement"));
}

TEST(TrainingRows, AMachineOfTheSettingTakesItsGpusRows) {
  TableSetting with = setting();
  with.machines.push_back({"H100", "fast", {}});
  with.machines[0].plan.software = "other";
  with.machines[0].plan.sequence_parallel = true;
  const auto all = rows(std::string(kPublished) +
                            "judge,S,G,1024,24,16,2048,51200,H100,64,8,4,,,512,none,400,\n"
                            "judge,S,G,1024,24,16,2048,51200,A100,64,8,4,,,512,none,140,\n", with);
  EXPECT_EQ(all[0].cluster, "fast");
  EXPECT_EQ(all[0].plan.software, "other");
  EXPECT_TRUE(all[0].plan.sequence_parallel);
  EXPECT_EQ(all[1].cluster, "own");
  EXPECT_FALSE(all[1].plan.sequence_parallel);
}

// 96 * 2 * 4 * 3 * 10^2 * (1 + 4/60 + 50/(16*3*10)), and 72 with 12 for 16.
TEST(TrainingRows, CountedFlopsAreNarayanansFormula) {
  TrainingRow row;
  row.hidden = 10;
  row.layers = 3;
  row.sequence = 4;
  row.vocabulary = 50;
  row.plan.global_batch = 2;
  row.plan.recompute = model::Recompute::kFull;
  EXPECT_NEAR(counted_flops(row), 230400 * (1 + 4.0 / 60 + 50.0 / 480), 1e-6);
  row.plan.recompute = model::Recompute::kNone;
  EXPECT_NEAR(counted_flops(row), 172800 * (1 + 4.0 / 60 + 50.0 / 360), 1e-6);
  row.model.emplace();
  row.model->published = model::PublishedCount{1000, 1, ""};
  EXPECT_NEAR(counted_flops(row), 6 * 1000 * 2 * 4, 1e-6);
}

TEST(TrainingRows, FaultsNameTheLine) {
  EXPECT_THAT(rows_of("a,b\n1,2\n", setting()).error().text(), HasSubstr("iteration_time_ms"));
  EXPECT_THAT(rows_of(std::string(kTimed) + "often,8,64,2,1024,16,24,2048,2,2,2,1500\n",
                      setting()).error().text(),
              testing::AllOf(HasSubstr("line 2"), HasSubstr("often")));
}

}  // namespace
}  // namespace bubblesim::validate
