// The forms of tables of measured sharing, by hand.
#include "sim/validate/sharing_table.hpp"

#include <gtest/gtest.h>

#include <string>

namespace bubblesim::validate {
namespace {

SharingSetting sharing_setting() {
  SharingSetting out;
  out.load = 0.5;
  out.epoch = 98;
  out.epoch_pause = std::chrono::milliseconds(98);
  out.step_pause = std::chrono::milliseconds(1);
  out.devices = {{"GV100", "v100-32gb"}, {"h100", "h100"}};
  out.systems = {{"time_slicing", "time_slicing", "", {}}};
  return out;
}

std::vector<SharingRow> rows_of(const char* text) {
  const auto table = CsvTable::parse(text, "any/t.csv");
  if (!table) return {};
  const auto rows = read_sharing_rows(*table, sharing_setting());
  return rows ? *rows : std::vector<SharingRow>{};
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

constexpr const char* kPair =
    "inference,training,system,load,GPU,inference_throughput_rel,training_throughput_rel,avg_ms,"
    "p90_ms,p95_ms,p99_ms,solo_avg_ms,extra\n"
    "net,job,Time-Slicing,0.1,H100,0.9,0.5,8,9,10,,5,1\n"
    "net,job,time_slicing,,,0,0.5,8,9,10,11,5,1\n"
    "net,job,time_slicing,50,T4,1,0.5,8,9,10,11,,1\n";

// At load 0.1 and 5 ms a request, 20 requests a second; by the setting's 0.5, 100.
TEST(SharingTable, LoadAndDeviceMayBeColumns) {
  const auto rows = rows_of(kPair);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_DOUBLE_EQ(rows[0].clients[0].per_s, 20);
  EXPECT_EQ(rows[0].device, "h100");
  EXPECT_EQ(rows[0].subject, "net beside job, load 0.1 on H100");
  EXPECT_EQ(rows[0].system, "time_slicing");
  EXPECT_DOUBLE_EQ(rows[1].clients[0].per_s, 100);
  EXPECT_EQ(rows[1].device, "");
  EXPECT_NE(rows[2].note.find("T4"), std::string::npos);
  EXPECT_EQ(unread_columns(*CsvTable::parse(kPair, "t.csv")), std::vector<std::string>{"extra"});
}

TEST(SharingTable, BlankAndZeroFiguresAreLeftOut) {
  const auto rows = rows_of(kPair);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].figures.size(), 5u);
  EXPECT_EQ(rows[0].left_out, std::vector<std::string>{"p99_ms"});
  EXPECT_EQ(rows[1].left_out, std::vector<std::string>{"inference_throughput_rel"});
  EXPECT_TRUE(rows[1].note.empty());
}

TEST(SharingTable, TextWhereANumberIsExpectedIsAFaultOfItsLine) {
  std::string text = kPair;
  text.replace(text.find("0.9,0.5"), 3, "n/a");
  const auto table = CsvTable::parse(text, "t.csv");
  const auto rows = read_sharing_rows(*table, sharing_setting());
  ASSERT_FALSE(rows);
  ASSERT_EQ(rows.error().size(), 1u);
  EXPECT_EQ(rows.error().front().place, "line 2");
}

TEST(SharingTable, OneProcessIsFoundByNumberAndName) {
  // 8 samples at 100 a second: 80 ms a pass.
  const auto rows = rows_of(
      "model,mig_compute_slices,batch,processes,samples_per_s_per_process,sum_relative_to_one\n"
      "resnet50,3,8,1.0,100,1\nResNet-50,3.0,8,2,60,1.5\nresnet50,9,8,2,60,1.2\n");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_DOUBLE_EQ(rows[1].clients[0].solo_ms, 80);
  EXPECT_NE(rows[2].note.find("found \"9\""), std::string::npos);
}

TEST(SharingTable, WaysToWriteABatchSizeAreOneName) {
  const auto rows = rows_of(
      "model,mig_compute_slices,batch,processes,samples_per_s_per_process,sum_relative_to_one\n"
      "net bs8,3,8,1,100,1\n\"net, batch size 8\",3,8,2,60,1.5\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_DOUBLE_EQ(rows[1].clients[0].solo_ms, 80);
}

TEST(SharingTable, CountsThatAreNotReadAreShownAsTheyAre) {
  const auto slices = rows_of(
      "gpu,case,metric,clients,alone,shared\n"
      "GV100,net,p95_ms,99,6,13\nGV100,net,p95_ms,,6,13\nGV100,net,p95_ms,2.0,6,13\n");
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[0].subject, "GV100, net, 99");
  EXPECT_EQ(slices[1].subject, "GV100, net");
  EXPECT_EQ(slices[2].subject, "GV100, net, 2");
  const auto equal = rows_of(
      "model,mig_compute_slices,batch,processes,samples_per_s_per_process,sum_relative_to_one\n"
      "net,9,,0.5,100,1\n");
  ASSERT_EQ(equal.size(), 1u);
  EXPECT_EQ(equal[0].subject, "net, 9g, 0.5");
  EXPECT_EQ(equal[0].system, "mps") << "not one process alone";
}

TEST(SharingTable, ABatchOfSamplesIsOnePass) {
  // 16 samples a pass at 800 samples a second: 20 ms.
  const auto rows = rows_of(
      "gpu,case,metric,clients,alone,shared\n"
      "gv100,\"two loops, net batch 16\",samples_per_s,2,800,720\n"
      "GV100,net at ./s,p95_ms,2,6,13\nGV100,net,p95,2,6,13\n"
      "GV100,net batch 1 beside net batch 4,p95_ms,2,6,13\n");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].device, "v100-32gb");
  EXPECT_DOUBLE_EQ(rows[0].clients[0].solo_ms, 20);
  for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_FALSE(rows[i].note.empty()) << i;
}

}  // namespace
}  // namespace bubblesim::validate
