// Collectives against times measured on A100 nodes by others: Vidur's tables, of which nothing was
// fitted but the size at which LL is left. tests/conformance/lab has those that were fitted to.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "sim/base/packed_file.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/network/topology.hpp"
#include "tests/fault.hpp"

namespace bubblesim::validation {
namespace {

namespace {

// Compressed CSV files of published measurements, for tests.

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream cells(line);
  for (std::string cell; std::getline(cells, cell, ',');) out.push_back(cell);
  return out;
}

/// Rows by column name; empty if the file cannot be read.
std::vector<std::map<std::string, std::string>> read_gzip_csv(const std::string& path) {
  std::istringstream lines(read_packed_text(path, 512, "a table").value_or(""));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> names = cells_of(line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = cells_of(line);
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < cells.size() && i < names.size(); ++i) row[names[i]] = cells[i];
  }
  return rows;
}

}  // namespace

using network::CollectivePattern;

// Other people's machine, driver and harness, medians of few repetitions: the scatter between
// equal sizes is 10 % and more.
constexpr double kVidurAllowed = 0.20;

const std::string kData = BUBBLESIM_DATA_DIR;
const std::string kVidur = kData + "/microsoft+vidur/data/profiling/network/a100_dgx";

hardware::ClusterSpec dgx() {
  return must(hardware::find_cluster_spec(
      "dgx-a100-80gb", std::string(BUBBLESIM_SOURCE_DIR) + "/configs/clusters"));
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
