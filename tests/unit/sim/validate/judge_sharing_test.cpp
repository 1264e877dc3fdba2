// Errors, summaries and orders of judged rows, and the forms of tables, by hand.
#include "sim/validate/judge_sharing.hpp"

#include <gtest/gtest.h>

#include <string>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/validate/sharing_text.hpp"
#include "tests/folders.hpp"

namespace bubblesim::validate {
namespace {

JudgedRow judged(const char* system, double measured, double simulated) {
  JudgedRow out;
  out.row.table = "table";
  out.row.subject = "service beside job";
  out.row.system = system;
  out.row.figures = {{"p95_ms", Quantity::kPercentile, 0, 95, measured, simulated}};
  return out;
}

SharingSetting sharing_setting() {
  SharingSetting out;
  out.load = 0.5;
  out.epoch = 98;
  out.epoch_pause = std::chrono::milliseconds(98);
  out.step_pause = std::chrono::milliseconds(1);
  out.devices = {{"GV100", "v100-32gb"}};
  return out;
}

std::vector<SharingRow> rows_of(const char* text) {
  const auto table = CsvTable::parse(text, "any/t.csv");
  if (!table) return {};
  const auto rows = read_sharing_rows(*table, sharing_setting());
  return rows ? *rows : std::vector<SharingRow>{};
}

TEST(JudgeSharing, ASummaryHasMeanBiasWorstAndShareWithinTheAim) {
  // +10 % and -20 % under mps: mean 15, bias -5; the aim of p95 is 15 %: one of two within.
  const auto all = summarise_sharing({judged("mps", 10, 11), judged("mps", 10, 8)});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NEAR(all[0].mean_absolute, 0.15, 1e-12);
  EXPECT_NEAR(all[0].bias, -0.05, 1e-12);
  EXPECT_NEAR(all[0].worst, -0.2, 1e-12);
  EXPECT_DOUBLE_EQ(all[0].within_aim, 0.5);
}

TEST(JudgeSharing, TheOrderIsOfAllComparisons) {
  // Measured a < b < c; simulated b < a < c: of 3 comparisons (ab, ac, bc) ab is wrong.
  const auto orders = order_sharing({judged("a", 1, 2), judged("b", 2, 1), judged("c", 3, 3)});
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].metric, "p95_ms");
  EXPECT_EQ(orders[0].compared, 3u);
  EXPECT_EQ(orders[0].right, 2u);
  EXPECT_EQ(orders[0].measured, "a < b < c");
  EXPECT_EQ(orders[0].simulated, "b < a < c");
}

TEST(JudgeSharing, WhatIsNotPredictedIsInNoSummary) {
  JudgedRow stated = judged("tally", 1, 2);
  stated.outcome = Outcome::kStated;
  stated.note = "no policy tally";
  EXPECT_TRUE(summarise_sharing({stated}).empty());
  EXPECT_TRUE(order_sharing({stated}).empty());
  EXPECT_NE(sharing_rows_text({stated}).find("no policy tally"), std::string::npos);
  EXPECT_NE(sharing_csv({stated}).find("stated"), std::string::npos);
}

TEST(JudgeSharing, WhatIsNotPredictedIsCountedByTableAndReason) {
  JudgedRow stated = judged("mig", 1, 2);
  stated.outcome = Outcome::kStated;
  stated.note = "no workload";
  JudgedRow failed = stated;
  failed.outcome = Outcome::kFailed;
  const auto counted = unjudged_sharing({stated, judged("mps", 1, 1), stated, failed});
  ASSERT_EQ(counted.size(), 2u);
  EXPECT_EQ(counted[0].rows, 2u);
  EXPECT_EQ(counted[1].rows, 1u);
  EXPECT_EQ(counted[1].outcome, Outcome::kFailed);
  EXPECT_NE(unjudged_text(counted).find("no workload"), std::string::npos);
  EXPECT_TRUE(unjudged_text({}).empty());
}

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
  EXPECT_EQ(rows->front().outcome, Outcome::kStated);
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
  return rows && rows->front().outcome == Outcome::kPredicted
             ? rows->front().row.figures.front().simulated
             : 0;
}

// Alone a pass takes 10 ms. Loops that begin 0, 2, 4, 6, 8 ms after one another meet on the GPU for
// 4, 2, 0, 0, 2 ms of each pass, which it takes longer: (20/14 + 20/12 + 2 + 2 + 20/12) / 5 = 1.75.
TEST(JudgeSharing, LoopsAreMetWhereverTheyStandToEachOther) {
  EXPECT_NEAR(sum_of_two_loops(1), 2, 0.02) << "5 ms apart they never meet";
  EXPECT_NEAR(sum_of_two_loops(5), 1.75, 0.02);
}

TEST(SharingTable, FaultsAreToldAtOnce) {
  const auto table = CsvTable::parse("role,inference,training,system\nfit,a,b,mps\n", "t.csv");
  ASSERT_TRUE(table);
  const auto rows = read_sharing_rows(*table, sharing_setting());
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().size(), 7u);  // solo_avg_ms and six figures
}

TEST(SharingTable, OneWithoutAKnownColumnIsOfNoForm) {
  const auto table = CsvTable::parse("a,b\n1,2\n", "t.csv");
  ASSERT_TRUE(table);
  const auto rows = read_sharing_rows(*table, sharing_setting());
  ASSERT_FALSE(rows);
  EXPECT_NE(rows.error().front().message.find("colocation_a100.csv"), std::string::npos);
  EXPECT_FALSE(setting_of_form(*table));
}

TEST(SharingTable, EqualClientsAreScaledToOneOfThem) {
  // 8 samples at 100 a second alone: 80 ms a pass; two at 60 each: 1.2 of one.
  const auto rows = rows_of(
      "role,model,mig_compute_slices,batch,processes,samples_per_s_per_process,"
      "sum_relative_to_one\n"
      "fit,net,3,8,1,100,1\nfit,net,3,8,2,60,1.2\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].system, "alone");
  EXPECT_DOUBLE_EQ(rows[0].figures[0].measured, 80);
  EXPECT_DOUBLE_EQ(rows[0].clients[0].solo_ms, 0) << "not scaled to what it is judged by";
  ASSERT_EQ(rows[1].clients.size(), 2u);
  EXPECT_DOUBLE_EQ(rows[1].clients[1].solo_ms, 80);
  EXPECT_EQ(rows[1].instance, 3u);
  EXPECT_DOUBLE_EQ(rows[1].figures[0].measured, 1.2);
}

TEST(SharingTable, TrainingsOfACaseAreFedAtTheirRateAlone) {
  // 40 a second: 25 ms each, of which 1 ms is an epoch's pause of 98 ms by its 98 iterations.
  const auto rows = rows_of(
      "role,case,job,system,per_s,relative_to_alone,mean_ms,p50_ms,p95_ms,p99_ms\n"
      "fit,c,production,alone,40,1,20,20,20,20\n"
      "fit,c,opportunistic,alone,4,1,100,100,100,100\n"
      "judge,c,production,tgs,30,0.75,30,30,30,30\n");
  ASSERT_EQ(rows.size(), 3u);
  const SharingRow& shared = rows[2];
  ASSERT_EQ(shared.clients.size(), 2u);
  EXPECT_NEAR(shared.clients[0].pause_ms, 98, 1e-9);
  EXPECT_NEAR(shared.clients[0].between_ms, 1, 1e-9);
  EXPECT_NEAR(shared.clients[0].feed_ms, 24, 1e-9);
  EXPECT_EQ(shared.clients[1].pace, Pace::kPeriodic) << "busy for less than half of its time";
  EXPECT_DOUBLE_EQ(shared.clients[1].per_s, 4);
  EXPECT_DOUBLE_EQ(shared.figures[0].measured, 0.75);
}

TEST(SharingTable, ACaseInWordsHasItsRateAndItsGpu) {
  const auto rows = rows_of(
      "role,gpu,case,metric,clients,alone,shared\n"
      "judge,GV100,net at 30.7/s +-50 % beside a closed loop of it,p50_ms,2,6.5,13\n"
      "judge,GV100,the same,p99_ms,2,6.5,14\n"
      "judge,T4,closed loops,mean_s,5,1.4,8.7\n");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].device, "v100-32gb");
  EXPECT_EQ(rows[0].clients[0].pace, Pace::kEven);
  EXPECT_DOUBLE_EQ(rows[0].clients[0].per_s, 30.7);
  EXPECT_EQ(rows[0].clients[1].pace, Pace::kLoop);
  EXPECT_EQ(rows[1].subject, rows[0].subject);
  EXPECT_DOUBLE_EQ(rows[1].figures[0].percent, 99);
  EXPECT_DOUBLE_EQ(rows[2].figures[0].measured, 8700);
  EXPECT_NE(rows[2].note.find("T4"), std::string::npos);
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
}

}  // namespace
}  // namespace bubblesim::validate
