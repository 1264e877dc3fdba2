// Reading measured all-reduce tables, and fitting to them.
#include "sim/fit/fit_all_reduce.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/sim/network/cluster_fixture.hpp"

namespace bubblesim::fit {
namespace {

using network::round_cluster;
using network::us;
using validate::AllReducePredictor;
using validate::AllReduceTable;

std::string write(const std::string& name, const std::string& text) {
  const std::string folder = testing::TempDir() + "/all_reduce_tables";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + name) << text;
  return folder + "/" + name;
}

std::string fault_of(const std::string& text) {
  const auto table = validate::read_all_reduce_table(write("bad", text), 8);
  return table ? std::string("no fault") : table.error().text();
}

TEST(AllReduceTable, ColumnsAreFoundByNameAndTheFirstTimeCounts) {
  const auto table = validate::read_all_reduce_table(
      write("good", "type,size(B),time(us),busbw(GB/s),time(us)\r\n"
                    "float,1024,3.5,0,9\r\nfloat,2048,4,0,9\r\n"), 4);
  ASSERT_TRUE(table) << table.error().text();
  EXPECT_EQ(table->gpus, 4U);
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_EQ(table->rows[0].bytes, Bytes{1024});
  EXPECT_EQ(table->rows[0].measured, Duration{3500});
}

TEST(AllReduceTable, FaultsNameTheLineAndWhatWasExpected) {
  EXPECT_NE(fault_of("").find("empty"), std::string::npos);
  EXPECT_NE(fault_of("size,time\n1,2\n").find("line 1: expected columns size(B)"),
            std::string::npos);
  EXPECT_NE(fault_of("size(B),time(ns)\n").find("found no row"), std::string::npos);
  EXPECT_NE(fault_of("size(B),time(ns)\n1024,5\n2048\n").find("line 3"), std::string::npos);
  EXPECT_NE(fault_of("size(B),time(ns)\n1024,nan\n").find("line 2"), std::string::npos);
  EXPECT_NE(fault_of("size(B),time(ns)\n1024,-5\n").find("line 2"), std::string::npos);
  EXPECT_NE(fault_of("size(B),time(ns)\n1024,5\n512,5\n").find("expected ascending sizes"),
            std::string::npos);
  EXPECT_FALSE(validate::read_all_reduce_table("no/such/file", 8));
}

TEST(AllReduceTable, AFolderIsReadByTheGpusInItsNames) {
  const std::string folder = testing::TempDir() + "/all_reduce_folder";
  std::filesystem::create_directories(folder);
  for (const char* name : {"AR_GPU8_LUT", "AR_GPU2_LUT", "README"}) {
    std::ofstream(folder + "/" + name) << "size(B),time(ns)\n1024,5000\n";
  }
  const auto tables = validate::read_all_reduce_folder(folder);
  ASSERT_TRUE(tables) << tables.error().text();
  ASSERT_EQ(tables->size(), 2U);
  EXPECT_EQ(tables->at(0).gpus, 2U);
  EXPECT_EQ(tables->at(1).gpus, 8U);
  EXPECT_FALSE(validate::read_all_reduce_folder("no/such/folder"));
}

hardware::ClusterSpec truth() {
  hardware::ClusterSpec spec = round_cluster();
  hardware::CollectiveSpec& costs = spec.collectives;
  costs.ring_base = {us(6.6), us(20), us(40)};
  costs.ring_hop = {us(0.6), us(1), us(4)};
  costs.bandwidth_share = {0.4, 0.7, 1};
  costs.local_copies = 0.5;
  costs.channel_quantum = Bytes{20000};
  spec.node.bandwidth = {200e9};
  return spec;
}

AllReduceTable table_of(const hardware::ClusterSpec& spec, std::uint32_t gpus) {
  const AllReducePredictor node(spec);
  AllReduceTable table{"made", gpus, {}};
  for (std::uint64_t mb = 1; mb <= 512; mb += mb < 32 ? 1 : 16) {
    table.rows.push_back({Bytes{mb << 20U}, node.time(gpus, Bytes{mb << 20U})});
  }
  return table;
}

TEST(FitAllReduce, FindsTheConstantsThatMadeTheTables) {
  std::vector<AllReduceTable> tables;
  for (const std::uint32_t gpus : {2U, 3U, 4U, 6U, 8U}) {
    tables.push_back(table_of(truth(), gpus));
  }
  hardware::ClusterSpec start = truth();
  start.collectives.ring_base = {us(6.6), us(14), us(30)};
  start.collectives.ring_hop = {us(0.6), us(1.9), us(3.4)};
  start.collectives.bandwidth_share[1] = 0.92;
  start.collectives.local_copies = 0.2;
  start.collectives.channel_quantum = Bytes{32768};
  start.node.bandwidth = {250e9};
  const auto fit = fit_all_reduce(tables, start);
  ASSERT_TRUE(fit) << fit.error().text();
  ASSERT_EQ(fit->constants.size(), 8U);
  EXPECT_NEAR(fit->spec.node.bandwidth.value, 200e9, 2e9);
  EXPECT_NEAR(fit->spec.collectives.local_copies, 0.5, 0.05);
  EXPECT_NEAR(to_seconds(fit->spec.collectives.ring_hop[2]), 4e-6, 0.2e-6);
  for (const AllReduceErrors& errors : fit->tables) {
    EXPECT_LT(errors.judge_mean, 0.01) << errors.gpus;
    EXPECT_EQ(errors.fit_rows > 0, errors.gpus % 2 == 0 && errors.gpus != 6) << errors.gpus;
  }
}

TEST(FitAllReduce, RefusesTablesItCannotUse) {
  const std::vector<AllReduceTable> judge{table_of(truth(), 3)};
  EXPECT_NE(fit_all_reduce(judge, truth()).error().text().find("expected tables of 2, 4 or 8"),
            std::string::npos);
  std::vector<AllReduceTable> large{table_of(truth(), 8)};
  large[0].gpus = 16;
  EXPECT_NE(fit_all_reduce(large, truth()).error().text().find("found 16 GPUs"),
            std::string::npos);
}

}  // namespace
}  // namespace bubblesim::fit
