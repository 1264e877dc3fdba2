// Rows that are judged or stated, and MIG instances, by hand.
#include "sim/validate/judge_sharing.hpp"

#include <gtest/gtest.h>

#include <string>

#include "sim/hardware/gpu_spec_file.hpp"
#include "tests/folders.hpp"

namespace bubblesim::validate {
namespace {

TEST(JudgeSharing, AJobWithoutAWorkloadIsStatedAndTheOthersAreJudged) {
  const policy::Registry policies;
  SharingStage stage;
  stage.policies = &policies;
  stage.settings["t"].path = "t.json";
  SharingRow row;
  row.table = "t";
  row.system = "alone";
  row.clients = {{WorkloadRole::kTraining, "gnn"}};
  const auto rows = judge_sharing({row}, stage, 1, nullptr);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front().outcome, RowOutcome::kStated);
  EXPECT_NE(rows->front().note.find("gnn"), std::string::npos);
}

// 6 ms of the host, then 4 ms of kernels that each fill the GPU: two such loops take them in turn.
constexpr const char* kLoop = R"({
  "names": ["loop"], "role": "inference", "source": "a test", "precision": "fp32",
  "launch_gap": "0us", "launch_call": "1us",
  "steps": [{"host": "6ms"},
            {"kernels": [{"name": "a", "count": 40, "time": "100us", "blocks": 216,
                          "threads": 1024, "bound": "compute"}]},
            {"sync": true}]})";

TEST(JudgeSharing, AnInstanceThatTheGpuHasNotIsStated) {
  const policy::Registry policies;
  SharingStage stage;
  stage.policies = &policies;
  stage.settings["t"].device = "gpu";
  stage.machines["gpu"].gpu.mig = {7, 8, 14};
  stage.workloads = {*parse_workload(kLoop, "loop.json")};
  SharingRow row;
  row.table = "t";
  row.system = "alone";
  row.clients = {{WorkloadRole::kInference, "loop"}};
  row.instance = 5;
  const auto rows = judge_sharing({row}, stage, 1, nullptr);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front().outcome, RowOutcome::kStated);
  EXPECT_NE(rows->front().note.find("5 compute slices"), std::string::npos);
}

std::string note_of(const char* name, std::uint32_t batch) {
  const policy::Registry policies;
  SharingStage stage;
  stage.policies = &policies;
  stage.settings["t"].device = "gpu";
  std::string text = kLoop;
  text.replace(text.find("\"loop\""), 6, "\"the loop\"");
  stage.workloads = {*parse_workload(text, "loop.json")};
  SharingRow row;
  row.table = "t";
  row.system = "alone";
  row.clients = {{WorkloadRole::kInference, name, batch}};
  const auto rows = judge_sharing({row}, stage, 1, nullptr);
  EXPECT_TRUE(rows && rows->front().outcome == RowOutcome::kStated) << name;
  return rows ? rows->front().note : "";
}

TEST(JudgeSharing, ABatchSizeThatAWorkloadCannotHaveIsStated) {
  const std::string cannot = "loop.json does not run at batch 8";
  EXPECT_TRUE(note_of("the loop, batch size 8", 0).starts_with(cannot));
  EXPECT_TRUE(note_of("the loop", 8).starts_with(cannot));
}

double sum_of_two_loops(std::uint32_t starts) {
  const policy::Registry policies;
  SharingStage stage;
  stage.policies = &policies;
  stage.machines["gpu"].gpu = *hardware::find_gpu_spec("a100-40gb", kDeviceFolder);
  stage.workloads = {*parse_workload(kLoop, "loop.json")};
  SharingSetting& setting = stage.settings["t"];
  setting.device = "gpu";
  setting.requests = 10;
  setting.starts = starts;
  SharingRow row;
  row.table = "t";
  row.system = "alone";
  row.clients = {{WorkloadRole::kInference, "loop"}, {WorkloadRole::kInference, "loop"}};
  row.figures = {{"sum", Quantity::kSum, 0, 0, 1, 0}};
  const auto rows = judge_sharing({row}, stage, 1, nullptr);
  return rows && rows->front().outcome == RowOutcome::kPredicted
             ? rows->front().row.figures.front().simulated
             : 0;
}

// Alone a pass takes 10 ms. Loops that begin 0, 2, 4, 6, 8 ms after one another meet on the GPU for
// 4, 2, 0, 0, 2 ms of each pass, which it takes longer: (20/14 + 20/12 + 2 + 2 + 20/12) / 5 = 1.75.
TEST(JudgeSharing, LoopsAreMetWhereverTheyStandToEachOther) {
  EXPECT_NEAR(sum_of_two_loops(1), 2, 0.02) << "5 ms apart they never meet";
  EXPECT_NEAR(sum_of_two_loops(5), 1.75, 0.02);
}

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
  const auto five = mig_instance(whole, 5);
  ASSERT_FALSE(five);
  EXPECT_NE(five.error().message.find("those of 1, 2, 3, 4, 7"), std::string::npos);
}

}  // namespace
}  // namespace bubblesim::validate
