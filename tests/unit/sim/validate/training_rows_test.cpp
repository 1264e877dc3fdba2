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
  out.name = "sets";
  out.cluster = "own";
  out.device = "a100-80gb";
  out.devices = {{"A100", "a100-80gb"}, {"h200", "h200"}};
  out.plan.software = "megatron-lm";
  return out;
}

CheckedResult<std::vector<TrainingRow>> rows_of(const std::string& text,
                                                const TableSetting& with = setting()) {
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::parse(text, "t.csv"));
  return training_rows(table, with);
}

std::string fault_of(const std::string& text) {
  const auto out = rows_of(text);
  return out ? "" : out.error().front().text();
}

std::vector<TrainingRow> rows(const std::string& text, const TableSetting& with = setting()) {
  auto out = rows_of(text, with);
  EXPECT_TRUE(out) << out.error().front().text();
  return out ? *out : std::vector<TrainingRow>(8);
}

TEST(TrainingRows, AnIterationTimeIsInMilliseconds) {
  const auto all = rows(std::string(kTimed) + "fit,8,64,2,1024,16,24,2048,2,2,2,1500\n");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].role, RowRole::kFit);
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

TEST(TrainingRows, GpusThatAreNotTheRanksAreStated) {
  const auto timed = rows(std::string(kTimed) + "fit,16,64,2,1024,16,24,2048,2,2,2,1500\n");
  EXPECT_THAT(timed[0].unpredictable, HasSubstr("16 GPUs are not the 8 ranks of tensor 2"));
  const auto published = rows(
      "hidden_size,layers,attention_heads,sequence_length,vocabulary,num_gpus,data_parallelism,"
      "global_batch,tflops_per_gpu\n1024,24,16,2048,51200,8,2,16,140\n");
  EXPECT_THAT(published[0].unpredictable, HasSubstr("8 GPUs are not the 16 ranks of tensor 8"));
}

TEST(TrainingRows, ATimeOfZeroIsNoMeasurementAndANegativeOneAFault) {
  const std::string row = "fit,8,64,2,1024,16,24,2048,2,2,2,";
  EXPECT_THAT(rows(kTimed + row + "0\n")[0].unpredictable, HasSubstr("no measurement"));
  for (const char* time : {"-5", "nan", "soon"}) {
    EXPECT_THAT(fault_of(kTimed + row + time + "\n"),
                testing::AllOf(HasSubstr("iteration_time_ms"), HasSubstr("a number above 0")));
  }
  const std::string run = "fit,S,G,1024,24,16,2048,51200,A100,64,8,4,,,512,full,";
  EXPECT_THAT(rows(kPublished + run + "0,\n")[0].unpredictable, HasSubstr("no measurement"));
  EXPECT_THAT(fault_of(kPublished + run + "140,-1\n"), HasSubstr("seconds_per_iteration"));
}

TEST(TrainingRows, SizesThatNoModelOrPlanHasAreStated) {
  const auto all = rows(std::string(kTimed) + "fit,8,64,2,536870912,16,24,2048,2,2,2,1500\n" +
                        "fit,200000000,64,2,1024,16,24,2048,2,2,2,1500\n" +
                        "fit,8,64,2,1024,16,24,2048,4294967298,2,2,1500\n" +
                        "fit,8,64,2,1048576,16,24,2048,2,2,2,1500\n");
  EXPECT_THAT(all[0].unpredictable, HasSubstr("hidden_size: found \"536870912\""));
  EXPECT_THAT(all[1].unpredictable, HasSubstr("num_gpus: found \"200000000\"; expected a whole "
                                              "number from 1 to 65536"));
  EXPECT_THAT(all[2].unpredictable, HasSubstr("tensor_parallelism: found"));
  EXPECT_THAT(all[3].unpredictable, HasSubstr("3.17e+14 parameters"));
}

TEST(TrainingRows, WhatARowSaysOfRecomputationAndVocabularyCounts) {
  std::string header = kTimed;
  header.insert(header.size() - 1, ",recompute,vocabulary");
  const std::string row = "fit,8,64,2,1024,16,24,2048,2,2,2,1500,";
  TableSetting with = setting();
  with.plan.recompute = model::Recompute::kFull;
  with.vocabulary = 7;
  const auto all = rows(header + row + "none,9\n" + row + ",\n" + row + "selective+sequence,\n",
                        with);
  EXPECT_EQ(all[0].plan.recompute, model::Recompute::kNone);
  EXPECT_EQ(all[0].vocabulary, 9U);
  EXPECT_EQ(all[1].plan.recompute, model::Recompute::kFull);
  EXPECT_EQ(all[1].vocabulary, 7U);
  EXPECT_EQ(all[2].plan.recompute, model::Recompute::kSelective);
  EXPECT_TRUE(all[2].plan.sequence_parallel);
  for (const char* word : {"selectivex", "full+sequence", "Full"}) {
    EXPECT_THAT(fault_of(header + row + word + ",\n"), HasSubstr("recompute"));
  }
}

TEST(TrainingRows, ColumnsThatAFormDoesNotReadAreListed) {
  std::string text = kTimed;
  text.insert(text.size() - 1, ",Device,expert_parallelism,virtual_stages");
  const std::vector<std::string> unread{"expert_parallelism", "virtual_stages"};
  EXPECT_EQ(unread_training_columns(*CsvTable::parse(text + ",,,,,,,,,,,,,,\n", "t.csv")), unread);
  text = kPublished;
  text.insert(text.size() - 1, ",recomputation");
  EXPECT_EQ(unread_training_columns(*CsvTable::parse(text + ",,,,,,,,,,,,,,,,,,\n", "t.csv")),
            std::vector<std::string>{"recomputation"});
}

// 24 layers x 1024 x 8192 tokens over 1e9 parameters: 20 %.
TEST(TrainingRows, AttentionThatTheCountLeavesOutIsStatedWhereItIsLarge) {
  TableSetting with = setting();
  with.models.emplace_back();
  with.models[0].spec = model::gpt(1024, 24, 16, 51200, 2048);
  with.models[0].published = model::PublishedCount{1e9, 1, ""};
  const std::string head = std::string(kPublished) + "judge,S,G,1024,24,16,";
  const std::string tail = ",51200,A100,64,8,4,,,512,none,";
  EXPECT_EQ(rows(head + "2048" + tail + "140,\n", with)[0].unpredictable, "");
  EXPECT_THAT(rows(head + "8192" + tail + "140,\n", with)[0].unpredictable,
              HasSubstr("not sure: attention's products are 20 %"));
  EXPECT_EQ(rows(head + "8192" + tail + ",2\n", with)[0].unpredictable, "");
}

TEST(TrainingRows, AMachineOfTheSettingTakesItsGpusRows) {
  TableSetting with = setting();
  with.machines.push_back({"H100", "fast", "h100", {}});
  with.devices["H100"] = "h100";
  with.machines[0].plan.software = "other";
  with.machines[0].plan.sequence_parallel = true;
  const auto all = rows(std::string(kPublished) +
                            "judge,S,G,1024,24,16,2048,51200,H100,64,8,4,,,512,none,400,\n"
                            "judge,S,G,1024,24,16,2048,51200,A100,64,8,4,,,512,none,140,\n"
                            "judge,S,G,1024,24,16,2048,51200,,64,8,4,,,512,none,140,\n"
                            "judge,S,G,1024,24,16,2048,51200,B200,64,8,4,,,512,none,140,\n"
                            "judge,S,G,1024,24,16,2048,51200,H200,64,8,4,,,512,none,140,\n", with);
  EXPECT_EQ(all[0].cluster, "fast");
  EXPECT_EQ(all[0].plan.software, "other");
  EXPECT_TRUE(all[0].plan.sequence_parallel);
  EXPECT_EQ(all[1].cluster, "own");
  EXPECT_FALSE(all[1].plan.sequence_parallel);
  EXPECT_EQ(all[2].cluster, "own");
  EXPECT_EQ(all[2].unpredictable, "");
  EXPECT_EQ(all[3].unpredictable, "no device file stands for B200");
  EXPECT_EQ(all[4].unpredictable,
            "the setting sets has no machine of h200; it has a100-80gb, h100");
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
  EXPECT_THAT(fault_of("a,b\n1,2\n"), HasSubstr("iteration_time_ms"));
  EXPECT_THAT(fault_of("iteration_time_ms\n2\n"), HasSubstr("hidden_size"));
  EXPECT_THAT(fault_of(std::string(kTimed) + "often,8,64,2,1024,16,24,2048,2,2,2,1500\n"),
              testing::AllOf(HasSubstr("line 2"), HasSubstr("often")));
}

}  // namespace
}  // namespace bubblesim::validate
