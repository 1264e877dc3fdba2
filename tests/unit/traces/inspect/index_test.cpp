// The inspection of real traces against figures that another program computed from the same
// files: INDEX.tsv of the data folder (columns idle, idle_steady, idle_noncomm, gaps, g100, g1ms;
// shares with four decimals).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "traces/import/kineto_import.hpp"
#include "traces/inspect/inspection.hpp"

namespace bubblesim::traces {
namespace {

namespace fs = std::filesystem;
using Row = std::map<std::string, std::string>;

/// Rounding to four decimals, and half a unit of float arithmetic on microsecond time stamps.
constexpr double kShareTolerance = 1.5e-4;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, '\t');) cells.push_back(cell);
  return cells;
}

std::vector<Row> kineto_rows() {
  std::vector<Row> rows;
  std::ifstream file(fs::path(BUBBLESIM_DATA_DIR) / "INDEX.tsv");
  std::string line;
  if (!std::getline(file, line)) return rows;
  const std::vector<std::string> keys = cells_of(line);
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = cells_of(line);
    Row row;
    for (std::size_t i = 0; i < keys.size() && i < cells.size(); ++i) row[keys[i]] = cells[i];
    if (row["kind"] == "kineto" && !row["idle"].empty()) rows.push_back(row);
  }
  return rows;
}

/// The index cuts the window's first gap but not its last one: it counts the gap that is open at
/// the window's end up to the next operation, where there is one. This is that excess, as a share
/// of the window.
double open_end(const Intervals& busy, Interval window) {
  for (std::size_t i = 1; i < busy.size(); ++i) {
    const Interval gap{busy[i - 1].end, busy[i].begin};
    if (gap.begin < window.end && gap.end > window.end) {
      return static_cast<double>(to_ns(gap.end - window.end)) /
             static_cast<double>(to_ns(window.length()));
    }
  }
  return 0;
}

double share(Duration part, Duration whole) {
  return static_cast<double>(to_ns(part)) / static_cast<double>(to_ns(whole));
}

/// The index's steady window: from the second marker to the last one's end or that of the device's
/// work; everything without a second marker.
Interval steady_of(const RankInspection& rank) {
  const auto& all = rank.iterations.all;
  if (!rank.iterations.marked || all.size() < 2) return rank.window;
  const Interval steady{std::max(all[1].span.begin, rank.window.begin),
                        std::min(all.back().span.end, rank.window.end)};
  return steady.begin < steady.end ? steady : rank.window;
}

/// What the index's program would print for this trace.
struct IndexFigures {
  double idle = 0;
  double idle_steady = 0;
  double idle_noncomm = 0;
};

IndexFigures figures_of(const RankTrace& trace, const RankInspection& rank) {
  const DeviceUse use = device_use(trace);
  const Interval window = steady_of(rank);
  const auto free_of = [&](const Intervals& spans) {
    return share(window.length() - total_length(clip(spans, window)), window.length()) +
           open_end(spans, window);
  };
  // To the index copies and memsets are work: all of a bubble but its transfers is its figure.
  Intervals work = use.own;
  work.insert(work.end(), use.transfer.begin(), use.transfer.end());
  return {share(rank.whole.idle(), rank.whole.length), free_of(use.busy),
          free_of(unite(std::move(work)))};
}

void expect_share(const Row& row, const std::string& key, double found) {
  const auto cell = row.find(key);
  if (cell == row.end() || cell->second.empty()) return;
  EXPECT_NEAR(std::stod(cell->second), found, kShareTolerance) << key;
}

/// Gaps of one nanosecond come and go with the rounding of start plus duration (AMD's kernels
/// follow each other by 1 ns), and so do 0.5 % of the others: doubles of microseconds since 1970
/// are 0.25 us apart.
void expect_gaps(const Row& row, const RankTrace& trace) {
  const DeviceUse use = device_use(trace);
  std::uint64_t sure = 0;
  std::uint64_t all = 0;
  for (const Interval& gap : gaps_within(use.busy, use.window)) {
    sure += gap.length() > Duration{1} ? 1 : 0;
    ++all;
  }
  const auto expected = std::stoull(row.at("gaps"));
  EXPECT_GE(expected + expected / 200, sure);
  EXPECT_LE(expected, all + all / 200);
}

/// One gap may lie on the other side of the limit.
void expect_count(const Row& row, const std::string& key, std::uint64_t found) {
  EXPECT_NEAR(std::stod(row.at(key)), static_cast<double>(found), 1) << key;
}

class AgainstIndex : public ::testing::TestWithParam<Row> {};

TEST_P(AgainstIndex, IdleSharesAndGapsAgree) {
  const Row& row = GetParam();
  SCOPED_TRACE(row.at("path"));
  const auto process = import_kineto_process(fs::path(BUBBLESIM_DATA_DIR) / row.at("path"));
  ASSERT_TRUE(process) << process.error().text();
  const RankTrace* trace = &process->ranks.front();
  const RankInspection rank = inspect_rank(*trace);
  const IndexFigures figures = figures_of(*trace, rank);
  expect_share(row, "idle", figures.idle);
  expect_share(row, "idle_steady", figures.idle_steady);
  expect_share(row, "idle_noncomm", figures.idle_noncomm);
  expect_gaps(row, *trace);
  expect_count(row, "g100", rank.whole.gaps_100us);
  expect_count(row, "g1ms", rank.whole.gaps_1ms);
}

std::string test_name(const ::testing::TestParamInfo<Row>& info) {
  std::string name = std::to_string(info.index) + "_" + info.param.at("path").substr(0, 40);
  for (char& character : name) {
    if (std::isalnum(static_cast<unsigned char>(character)) == 0) character = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(RealTraces, AgainstIndex, ::testing::ValuesIn(kineto_rows()), test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AgainstIndex);

TEST(IndexFile, IsThere) {
  if (kineto_rows().empty()) GTEST_SKIP() << "no INDEX.tsv under BUBBLESIM_DATA_DIR";
}

}  // namespace
}  // namespace bubblesim::traces
