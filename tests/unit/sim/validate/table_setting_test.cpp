// Settings of tables: by the table's own name, else by its columns.
#include "sim/validate/table_setting.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/folders.hpp"

namespace bubblesim::validate {
namespace {

std::string setting_name(std::string_view text, std::string file) {
  const auto table = CsvTable::parse(text, std::move(file));
  EXPECT_TRUE(table);
  const auto found = setting_for(*table, kConfigFolder);
  EXPECT_TRUE(found);
  return found ? found->name : "";
}

TEST(TableSetting, ATablesOwnNameComesFirst) {
  EXPECT_EQ(setting_name("num_gpus\n512\n", "x/megatron_deepspeed_a100_single_node.csv"),
            "megatron_deepspeed_a100_single_node");
}

TEST(TableSetting, OtherNamesGoByColumnsAndSizes) {
  EXPECT_EQ(setting_name("num_gpus\n8\n512\n", "x.csv"), "megatron_deepspeed_a100_multi_node");
  EXPECT_EQ(setting_name("num_gpus\n8\n2\n", "x.csv"), "megatron_deepspeed_a100_single_node");
  EXPECT_EQ(setting_name("tflops_per_gpu\n8\n", "x.csv"), "published_training_runs");
  EXPECT_EQ(setting_name("tflops_per_gpu,num_gpus,iteration_time_ms\n9,8,2\n", "x.csv"),
            "megatron_deepspeed_a100_single_node");
}

TEST(TableSetting, PublishedRunsHaveAMachineForEachGpuAndAModel) {
  const auto setting = find_setting("published_training_runs", kConfigFolder);
  ASSERT_TRUE(setting) << setting.error().front().text();
  EXPECT_EQ(setting->cluster, "selene");
  EXPECT_EQ(setting->device, "a100-80gb");
  ASSERT_EQ(setting->machines.size(), 1U);
  EXPECT_EQ(setting->machines[0].gpu, "H100");
  EXPECT_EQ(setting->machines[0].cluster, "h100-roce");
  EXPECT_EQ(setting->machines[0].device, "h100");
  EXPECT_EQ(setting->devices.at("H100"), "h100");
  EXPECT_EQ(setting->devices.at("NVIDIA H200"), "h200");
  ASSERT_EQ(setting->models.size(), 1U);
  EXPECT_EQ(setting->models[0].id, "llama3-405b");
}

TEST(TableSetting, AnUnknownNameIsRefusedWithTheNearest) {
  const auto setting = find_setting("published_training_run", kConfigFolder);
  ASSERT_FALSE(setting);
  EXPECT_THAT(setting.error().front().text(), testing::HasSubstr("published_training_runs"));
}

}  // namespace
}  // namespace bubblesim::validate
