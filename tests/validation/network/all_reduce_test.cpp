// Collectives against times measured on A100 nodes by others: vTrain's tables (1 MB to 1 GB, 2 to
// 8 GPUs), of which a part was fitted, and Vidur's (nothing of them was fitted but the size at
// which LL is left).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "sim/fit/fit_all_reduce.hpp"
#include "sim/hardware/cluster_spec_file.hpp"
#include "sim/network/topology.hpp"
#include "tests/validation/network/gzip_csv.hpp"

namespace bubblesim::validation {
namespace {

using fit::AllReduceErrors;
using network::CollectivePattern;

// The aim is 5 % on each table; what is reached is far less, so that growth shows.
constexpr double kMeanAllowed = 0.025;
constexpr double kOctaveMeanAllowed = 0.065;
// Other people's machine, driver and harness, medians of few repetitions: the scatter between
// equal sizes is 10 % and more.
constexpr double kVidurAllowed = 0.20;

const std::string kData = BUBBLESIM_DATA_DIR;
const std::string kTables = kData + "/VIA-Research+vTrain/trace/a100";
const std::string kVidur = kData + "/microsoft+vidur/data/profiling/network/a100_dgx";

hardware::ClusterSpec dgx() {
  auto spec = hardware::find_cluster_spec(
      "dgx-a100-80gb", std::string(BUBBLESIM_SOURCE_DIR) + "/configs/clusters");
  if (!spec) {
    ADD_FAILURE() << spec.error().front().text();
    return {};
  }
  return *std::move(spec);
}

void expect_small_errors(const std::vector<AllReduceErrors>& tables) {
  for (const AllReduceErrors& table : tables) {
    std::printf("%u GPUs: fit rows %.2f %%, judge rows %.2f %%, octaves %.2f %%, worst %.1f %%\n",
                table.gpus, 100 * table.fit_mean, 100 * table.judge_mean, 100 * table.octave_mean,
                100 * table.worst);
    EXPECT_LE(table.fit_mean, kMeanAllowed) << table.gpus;
    EXPECT_LE(table.judge_mean, kMeanAllowed) << table.gpus;
    EXPECT_LE(table.octave_mean, kOctaveMeanAllowed) << table.gpus;
  }
}

TEST(AllReduce, MeetsTheMeasuredTablesOfTwoToEightGpus) {
  if (!std::filesystem::exists(kTables)) GTEST_SKIP() << "no tables at " << kTables;
  const auto tables = validate::read_all_reduce_folder(kTables);
  ASSERT_TRUE(tables) << tables.error().text();
  ASSERT_EQ(tables->size(), 7U);
  expect_small_errors(fit::judge_all_reduce(*tables, dgx()));
}

// What anyone gets who repeats the fit from NCCL's own constants.
TEST(AllReduce, TheFitCanBeRepeated) {
  if (!std::filesystem::exists(kTables)) GTEST_SKIP() << "no tables at " << kTables;
  const auto tables = validate::read_all_reduce_folder(kTables);
  ASSERT_TRUE(tables) << tables.error().text();
  hardware::ClusterSpec start = dgx();
  start.collectives.ring_base = {Duration{6600}, Duration{14000}, Duration{8400}};
  start.collectives.ring_hop = {Duration{600}, Duration{1900}, Duration{3400}};
  start.collectives.bandwidth_share[1] = 0.92;
  start.collectives.channel_quantum = Bytes{32768};
  start.node.bandwidth = {240e9};
  const auto fit = fit::fit_all_reduce(*tables, start);
  ASSERT_TRUE(fit) << fit.error().text();
  for (const auto& constant : fit->constants) {
    std::printf("%s: %.4g -> %.4g %s\n", constant.path.c_str(), constant.start, constant.value,
                constant.unit.c_str());
  }
  expect_small_errors(fit->tables);
}

/// Least of the ranks' medians by size, for groups that fill `per_node` GPUs of one node.
std::map<std::uint64_t, double> vidur_times(const std::string& collective,
                                            const std::string& gpus) {
  std::map<std::uint64_t, double> out;
  for (auto& row : read_gzip_csv(kVidur + "/" + collective + ".csv.gz")) {
    if (row["num_workers"] != gpus || row["devices_per_node"] != gpus) continue;
    const double us = 1e3 * std::stod(row["time_stats." + collective + ".median"]);
    const auto [at, fresh] = out.try_emplace(std::stoull(row["size"]), us);
    at->second = std::min(at->second, us);
  }
  return out;
}

void expect_near_vidur(CollectivePattern kind, const std::string& name, std::uint32_t gpus) {
  const network::Topology topology(dgx());
  double sums[2] = {0, 0};
  double counts[2] = {0, 0};
  for (const auto& [bytes, us] : vidur_times(name, std::to_string(gpus))) {
    const auto transfer = topology.plan(kind, Bytes{bytes}, network::strided_group(0, gpus));
    const double simulated = 1e6 * to_seconds(topology.solo_time(transfer));
    const std::size_t large = bytes >= (1U << 20U) ? 1 : 0;
    sums[large] += std::abs(simulated / us - 1);
    counts[large] += 1;
  }
  ASSERT_GT(counts[1], 0);
  std::printf("Vidur, %s of %u GPUs: from 1 MiB up %.1f %%, below %.1f %%\n", name.c_str(), gpus,
              100 * sums[1] / counts[1], 100 * sums[0] / std::max(counts[0], 1.0));
  EXPECT_LE(sums[1] / counts[1], kVidurAllowed);
}

TEST(AllReduce, IsNearOtherMeasurementsOfTheSameNode) {
  if (!std::filesystem::exists(kVidur)) GTEST_SKIP() << "no tables at " << kVidur;
  for (const std::uint32_t gpus : {2U, 4U, 8U}) {
    expect_near_vidur(CollectivePattern::kAllReduce, "all_reduce", gpus);
  }
}

TEST(SendRecv, IsNearMeasurementsInsideANode) {
  if (!std::filesystem::exists(kVidur)) GTEST_SKIP() << "no tables at " << kVidur;
  expect_near_vidur(CollectivePattern::kSendRecv, "send_recv", 2);
}

}  // namespace
}  // namespace bubblesim::validation
