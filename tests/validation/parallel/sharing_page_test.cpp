// docs/sharing.md against the program: its table of errors with and without each mechanism, on a
// part of the rows and in shorter runs; how TGS's limit moves, against XSched's logs.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/packed_file.hpp"
#include "sim/validate/judge_sharing.hpp"
#include "sim/validate/mechanisms.hpp"
#include "tests/folders.hpp"

namespace bubblesim::validate {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kThreads = 2;
const std::string kSources = BUBBLESIM_SOURCE_DIR;

struct Stated {
  std::string mechanism, table, system, metric;
  double with = 0, without = 0;  // percent
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream text(line.substr(1));
  for (std::string cell; std::getline(text, cell, '|');) {
    std::erase_if(cell, [](char c) { return c == ' ' || c == '`' || c == '%'; });
    out.push_back(cell);
  }
  return out;
}

// "| `l2` | `sm_caps_a100` | `sm_cap` | `metric` | 6 | 5.1 | 5.2 |"
std::vector<Stated> stated_figures() {
  std::vector<Stated> out;
  const auto page = read_text_file(kSources + "/docs/sharing.md");
  if (!page) return out;
  std::istringstream text(*page);
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("| `")) continue;
    const auto cells = cells_of(line);
    if (cells.size() != 7) continue;
    out.push_back({cells[0], cells[1], cells[2], cells[3], std::stod(cells[5]),
                   std::stod(cells[6])});
  }
  return out;
}

// Every tenth row of the longest table; no runs of minutes.
void shorten(SharingStage& stage, std::vector<SharingRow>& rows) {
  std::size_t seen = 0;
  std::erase_if(rows, [&](const SharingRow& row) {
    return row.table == "equal_mps_clients_a100" && seen++ % 10 != 0;
  });
  for (auto& [table, setting] : stage.settings) {
    setting.requests = std::min(setting.requests, table == "colocation_a100" ? 8U : 30U);
    setting.starts = std::min(setting.starts, 3U);
    setting.least_length = std::min<Duration>(setting.least_length, 20s);
    for (MeasuredSpan& span : setting.spans) span.until = std::min<Duration>(span.until, 30s);
    for (MeasuredSpan& span : setting.spans) span.from = std::min<Duration>(span.from, 2s);
  }
}

// What a system's rows of a table err by; without a mechanism, if one is named.
std::vector<SharingSummary> summaries_of(const Stated& cell, const std::string& mechanism) {
  const std::string configs = kSources + "/configs";
  const policy::Registry policies = policies::judged_policies();
  auto stage = make_sharing_stage(configs, policies);
  const std::string path = std::string(BUBBLESIM_VALIDATION_DIR) + "/" + cell.table + ".csv";
  auto rows = add_sharing_table(*stage, path, {}, configs);
  if (!rows) return {};
  std::erase_if(*rows, [&](const SharingRow& row) { return row.system != cell.system; });
  shorten(*stage, *rows);
  if (!mechanism.empty() && !leave_out(*stage, mechanism)) return {};
  const auto out = judge_sharing(*rows, *stage, kThreads, nullptr);
  return out ? summarise_sharing(*out) : std::vector<SharingSummary>{};
}

// Of the rows marked judge if there are any, else of all; percent, negative if there are none.
double error_of(const std::vector<SharingSummary>& summaries, const std::string& metric) {
  double out = -1;
  for (const SharingSummary& summary : summaries) {
    if (summary.metric != metric) continue;
    if (summary.role == "judge" || out < 0) out = 100 * summary.mean_absolute;
    if (summary.role == "judge") return out;
    if (summary.role == "all" && out >= 0) out = 100 * summary.mean_absolute;
  }
  return out;
}

// Short runs and fewer rows move a mean by a few points, percentiles of few requests by more.
double slack(const std::string& metric, double percent) {
  return metric == "p95_ms" ? std::max(8.0, 0.5 * percent) : std::max(3.0, 0.3 * percent);
}

TEST(SharingPage, ItsErrorsAreThoseOfTheProgram) {
  const std::string folder = BUBBLESIM_VALIDATION_DIR;
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no tables at " << folder;
  const auto cells = stated_figures();
  ASSERT_GE(cells.size(), 8u);
  std::map<std::string, std::vector<SharingSummary>> known;
  const auto error = [&](const Stated& cell, const std::string& mechanism) {
    const std::string key = cell.table + "|" + cell.system + "|" + mechanism;
    const auto [at, fresh] = known.try_emplace(key);
    if (fresh) at->second = summaries_of(cell, mechanism);
    return error_of(at->second, cell.metric);
  };
  for (const Stated& cell : cells) {
    const std::string name = cell.mechanism + ", " + cell.table + ", " + cell.system;
    const double with = error(cell, "");
    const double without = error(cell, cell.mechanism);
    std::printf("%s, %s: %.1f %.1f (page %.1f %.1f)\n", name.c_str(), cell.metric.c_str(), with,
                without, cell.with, cell.without);
    ASSERT_GE(with, 0) << name << " has no " << cell.metric;
    EXPECT_NEAR(with, cell.with, slack(cell.metric, cell.with)) << name;
    EXPECT_NEAR(without, cell.without, slack(cell.metric, cell.without)) << name;
  }
}

// An ablation simulates the rows that a mechanism touches; the others would be the same without.
TEST(SharingPage, WhatAMechanismDoesNotTouchStays) {
  const std::string folder = BUBBLESIM_VALIDATION_DIR;
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no tables at " << folder;
  const policy::Registry policies = policies::judged_policies();
  auto stage = make_sharing_stage(kSources + "/configs", policies);
  std::vector<SharingRow> rows;
  for (const char* table : {"time_slices", "sm_caps_a100", "mig_training_a100", "cotraining_gv100",
                            "equal_mps_clients_a100"}) {
    const auto more =
        add_sharing_table(*stage, folder + "/" + table + ".csv", {}, kSources + "/configs");
    ASSERT_TRUE(more);
    for (std::size_t i = 0; i < more->size(); i += more->size() / 10 + 1) {
      rows.push_back((*more)[i]);
    }
  }
  for (auto& [table, setting] : stage->settings) {
    setting.requests = 4;
    setting.least_length = 1s;
    for (MeasuredSpan& span : setting.spans) span = {span.case_name, 1s, 5s};
  }
  const auto with = judge_sharing(rows, *stage, kThreads, nullptr);
  ASSERT_TRUE(with);
  std::size_t untouched = 0;
  for (const Mechanism& mechanism : sharing_mechanisms()) {
    SharingStage changed = *stage;
    mechanism.leave_out(changed);
    std::vector<SharingRow> others;
    std::vector<double> before;
    for (const JudgedRow& row : *with) {
      if (mechanism.touches(row.row, *stage)) continue;
      others.push_back(row.row);
      for (const SharingFigure& figure : row.row.figures) before.push_back(figure.simulated);
    }
    const auto without = judge_sharing(others, changed, kThreads, nullptr);
    ASSERT_TRUE(without);
    std::vector<double> after;
    for (const JudgedRow& row : *without) {
      for (const SharingFigure& figure : row.row.figures) after.push_back(figure.simulated);
    }
    EXPECT_EQ(before, after) << mechanism.name;
    untouched += others.size();
  }
  EXPECT_GT(untouched, 3 * rows.size());
}

// ---- TGS over time

constexpr std::size_t kWindow = 10;  // s
const std::string kLogs = kDataFolder + "/XpuOS+xsched-artifacts/results/fig11/raw";

// Passes a second in windows of one process's log, from an instant of its day (s) on.
std::vector<double> logged(const std::string& job, double start) {
  const auto text = read_packed_text(kLogs + "/cotrain_tgs_" + job + "_gv100.json.gz", 512,
                                     "a log");
  std::vector<double> out;
  if (!text) return out;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find("\"time\": \"");
    if (at == std::string::npos) continue;
    const std::string time = line.substr(at + 9, 15);  // 05:25:37.583044
    const double second = 3600 * std::stod(time.substr(0, 2)) + 60 * std::stod(time.substr(3, 2)) +
                          std::stod(time.substr(6));
    if (second < start) continue;
    const auto window = static_cast<std::size_t>((second - start) / kWindow);
    if (out.size() <= window) out.resize(window + 1);
    out[window] += 1.0 / kWindow;
  }
  return out;
}

// Both jobs run from 5:25:37.6 on.
constexpr double kBothRun = 5 * 3600 + 25 * 60 + 37.6;

double mean_of(const std::vector<double>& rates, std::size_t from, std::size_t until) {
  double sum = 0;
  for (std::size_t i = from; i < until; ++i) sum += rates.at(i);
  return sum / static_cast<double>(until - from);
}

// In the profile the filler has nothing; then its limit rises for over a minute, stays, and falls
// to almost nothing once in five minutes, to rise again.
TEST(SharingPage, TgsMovesAsItsLogsSay) {
  const std::vector<double> log = logged("ojob", kBothRun);
  if (log.empty()) GTEST_SKIP() << "no logs in " << kLogs;
  const std::string configs = kSources + "/configs";
  const policy::Registry policies = policies::judged_policies();
  auto stage = make_sharing_stage(configs, policies);
  auto rows = add_sharing_table(
      *stage, std::string(BUBBLESIM_VALIDATION_DIR) + "/cotraining_gv100.csv", {}, configs);
  ASSERT_TRUE(rows);
  std::erase_if(*rows, [](const SharingRow& row) {
    return row.system != "tgs" || row.subject != "cotrain, opportunistic";
  });
  stage->window = std::chrono::seconds(kWindow);
  const auto judged = judge_sharing(*rows, *stage, kThreads, nullptr);
  ASSERT_TRUE(judged);
  const std::vector<double>& simulated = judged->front().over_time;
  ASSERT_GE(simulated.size(), 28u);
  for (std::size_t i = 0; i < std::min(log.size(), simulated.size()); ++i) {
    std::printf("%3zu s: log %.1f simulated %.1f\n", kWindow * i, log[i], simulated[i]);
  }
  for (std::size_t i = 0; i < 11; ++i) EXPECT_NEAR(simulated[i], log[i], 1) << "the rise";
  for (const auto& rates : {log, simulated}) {
    EXPECT_LT(mean_of(rates, 0, 3), 1) << "the profile";
    EXPECT_LT(mean_of(rates, 3, 5), 3) << "the limit rises slowly";
    EXPECT_GT(mean_of(rates, 11, 15), 6.5) << "and stays";
    const auto fall = std::min_element(rates.begin() + 14, rates.begin() + 24);
    EXPECT_LT(*fall, 2.5) << "until it falls";
    EXPECT_GT(mean_of(rates, 25, 28), 5) << "and rises again";
  }
}

}  // namespace
}  // namespace bubblesim::validate
