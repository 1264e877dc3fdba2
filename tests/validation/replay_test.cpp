// Every published trace that the data folder holds, replayed alone: the simulated iteration times
// against the recorded ones. Expected values come from real GPUs (V100, A100, H100, H200, RTX,
// Instinct); INDEX.tsv names the public repository, commit and file of each.
//
// As a program of its own it prints the errors: `validation_replay --table DATA_DIR`
// (scripts/validate-replay).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string_view>

#include "sim/run/load_trace.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/sensitivity.hpp"
#include "tests/folders.hpp"
#include "tests/validation/recorded_jobs.hpp"
#include "traces/inspect/inspection.hpp"
#include "traces/inspect/render_text.hpp"

namespace bubblesim::validation {
namespace {

using traces::Bottleneck;

/// Mean and largest of the jobs' mean errors, over the `count` jobs that were replayed.
struct ReplayErrors {
  std::size_t count = 0;
  double mean = 0;
  double worst = 0;
};

std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", 100 * fraction);
  return text;
}

std::string row(const Replayed& replay) {
  const std::string head = "| " + replay.name + " | ";
  if (!replay.fault.empty()) return head + "| | " + replay.fault + " | |\n";
  if (!replay.has_host_calls) return head + "| | no host calls recorded | |\n";
  return head + std::to_string(replay.report.ranks.size()) + " | " +
         std::to_string(replay.iterations()) + " | " + percent(replay.report.mean_error()) +
         " | " + percent(replay.span_error()) + " |\n";
}

ReplayErrors summarise(const std::vector<Replayed>& replays) {
  ReplayErrors summary;
  for (const Replayed& replay : replays) {
    if (!replay.has_host_calls || !replay.fault.empty()) continue;
    ++summary.count;
    summary.mean += replay.report.mean_error();
    summary.worst = std::max(summary.worst, replay.report.mean_error());
  }
  if (summary.count > 0) summary.mean /= static_cast<double>(summary.count);
  return summary;
}

/// One row a job; the row of a job that could not be replayed has the fault.
std::string markdown(const std::vector<Replayed>& replays) {
  std::string text =
      "| trace | ranks | iterations | mean error % | span error % |\n|---|---:|---:|---:|---:|\n";
  for (const Replayed& replay : replays) text += row(replay);
  return text;
}

std::string section(const std::string& title, const std::vector<Replayed>& replays) {
  const ReplayErrors errors = summarise(replays);
  return "## " + title + "\n\n" + markdown(replays) + "\n" + std::to_string(errors.count) +
         " replayed: mean " + percent(errors.mean) + " %, worst " + percent(errors.worst) +
         " %\n";
}

// The best published replay of kernel traces has a mean error of 3.3 %.
constexpr double kMeanAllowed = 0.02;
constexpr double kWorstAllowed = 0.05;

class Replay : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_data(kDataFolder)) GTEST_SKIP() << "no data folder at " << kDataFolder;
  }

  static void expect_small_errors(const std::vector<Replayed>& replays) {
    for (const Replayed& replay : replays) {
      EXPECT_EQ(replay.fault, "") << replay.name;
      EXPECT_LE(replay.report.mean_error(), kWorstAllowed) << replay.name;
    }
    const ReplayErrors errors = summarise(replays);
    EXPECT_GT(errors.count, 0U);
    EXPECT_LE(errors.mean, kMeanAllowed);
    std::printf("%zu replayed: mean error %.3f %%, worst %.3f %%\n", errors.count,
                100 * errors.mean, 100 * errors.worst);
  }
};

TEST_F(Replay, EachFileAloneMeetsItsRecordedIterationTimes) {
  std::vector<Replayed> replays = replay_all(single_files(kDataFolder));
  // The one file without a device operation is an input fault, not a replay.
  std::erase_if(replays, [](const Replayed& replay) {
    return replay.name.find("rank_non_gpu") != std::string::npos;
  });
  expect_small_errors(replays);
}

TEST_F(Replay, RanksOfAJobTogetherMeetTheirRecordedIterationTimes) {
  expect_small_errors(replay_all(whole_jobs(kDataFolder)));
}

// What the iteration times of recorded jobs depend on: laws, and counterfactuals of busy GPUs.
/// A job's sensitivities, with the shares of its devices' time.
struct JobSensitivities {
  std::string name;
  std::string fault;  ///< empty: it was replayed
  traces::Sensitivities found;
  traces::DeviceShares shares;
  /// Iteration time with both kernels and hosts twice as fast, over the unchanged one.
  double with_both_twice = 1;
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::vector<RecordedJob> jobs_of(const std::string& data_folder) {
  std::vector<RecordedJob> jobs = whole_jobs(data_folder);
  std::set<std::string> taken;
  for (const RecordedJob& job : jobs) taken.insert(job.paths.begin(), job.paths.end());
  for (const RecordedJob& file : single_files(data_folder)) {
    if (!taken.contains(file.paths.front())) jobs.push_back(file);
  }
  return jobs;
}

Result<void> measure(const RecordedJob& job, JobSensitivities& result) {
  BUBBLESIM_ASSIGN_OR_RETURN(const run::LoadedTrace trace, run::load_trace(job.paths));
  CounterSet counters;
  auto device = run::device_for_replay(trace.job, kDeviceFolder, counters);
  if (!device) return tl::unexpected<Error>(device.error().front());
  BUBBLESIM_ASSIGN_OR_RETURN(
      const workload::JobProgram program,
      workload::build_job_program(trace.job, *device, {workload::Window::kIterations}));
  BUBBLESIM_ASSIGN_OR_RETURN(result.found, workload::find_sensitivities(program, *device));
  result.shares = traces::device_shares(traces::inspect_job(trace.job));
  using enum workload::WhatIfTarget;
  BUBBLESIM_ASSIGN_OR_RETURN(
      const Duration both, workload::iteration_with({kAllKernels, kHost}, program, *device));
  result.with_both_twice = to_seconds(both) / to_seconds(result.found.iteration);
  return {};
}

std::string reasons(const JobSensitivities& job) {
  std::string text;
  for (const Bottleneck what : {Bottleneck::kKernels, Bottleneck::kLink, Bottleneck::kHost}) {
    const std::string reason = traces::near_zero_reason(what, job.found, job.shares);
    if (reason.empty()) continue;
    text += (text.empty() ? "" : "; ") + std::string(traces::bottleneck_name(what)) + ": " + reason;
  }
  return text;
}

/// One result for every job with host calls: whole jobs, then each file that belongs to no job.
std::vector<JobSensitivities> all_sensitivities(const std::string& data_folder) {
  std::vector<JobSensitivities> results;
  for (const RecordedJob& job : jobs_of(data_folder)) {
    JobSensitivities result;
    result.name = job.name;
    if (auto done = measure(job, result); !done) result.fault = done.error().message;
    results.push_back(std::move(result));
  }
  return results;
}

/// One row a job, in Markdown, with the reasons for sensitivities near zero.
std::string sensitivity_section(const std::vector<JobSensitivities>& jobs) {
  std::string text =
      "## What the iteration time depends on\n\nThe sensitivity to a thing is 2 (1 - T'/T): T is "
      "the "
      "iteration time replayed, T' the same with that thing twice as fast. 1: it halves.\n\n"
      "| job | iteration ms | own work % | kernels | copies | link | host | rest | near zero "
      "because |\n|---|---:|---:|---:|---:|---:|---:|---:|---|\n";
  for (const JobSensitivities& job : jobs) {
    text += "| " + job.name + " | ";
    if (!job.fault.empty()) {
      text += "| | | | | | | " + job.fault + " |\n";
      continue;
    }
    text += number(1e3 * to_seconds(job.found.iteration)) + " | " + number(100 * job.shares.own);
    for (const double value : {job.found.kernels, job.found.copies, job.found.link, job.found.host,
                               job.found.rest()}) {
      text += " | " + number(value);
    }
    text += " | " + reasons(job) + " |\n";
  }
  return text;
}

class Sensitivity : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (has_data(kDataFolder)) jobs = all_sensitivities(kDataFolder);
  }
  void SetUp() override {
    if (!has_data(kDataFolder)) GTEST_SKIP() << "no data folder at " << kDataFolder;
  }
  static inline std::vector<JobSensitivities> jobs;
};

// A call that no longer waits returns without the lag of one that did: a trifle beyond the law.
constexpr double kTrifle = 0.01;

TEST_F(Sensitivity, adds_up_to_at_most_one_on_every_job) {
  ASSERT_FALSE(jobs.empty());
  for (const JobSensitivities& job : jobs) {
    if (!job.fault.empty()) continue;
    const traces::Sensitivities& found = job.found;
    for (const double value : {found.kernels, found.copies, found.link, found.host}) {
      EXPECT_GE(value, 0) << job.name;
      EXPECT_LE(value, 1) << job.name;
    }
    EXPECT_GE(found.rest(), -kTrifle) << job.name;
  }
}

// Kernels alone may leave the hosts as long as they were, where these were nearly as long.
TEST_F(Sensitivity, a_gpu_that_is_busy_with_its_own_kernels_finishes_a_third_sooner) {
  std::size_t busy = 0;
  for (const JobSensitivities& job : jobs) {
    if (!job.fault.empty() || job.shares.own < 0.9) continue;
    ++busy;
    EXPECT_LE(job.with_both_twice, 2.0 / 3) << job.name;
    if (job.found.host + job.found.rest() < 1.0 / 3) {
      EXPECT_GE(job.found.kernels, 2.0 / 3) << job.name;
    }
  }
  EXPECT_GE(busy, 3U);
}

}  // namespace

/// The whole page: single files, then jobs, each with its summary.
std::string validation_page(const std::string& data_folder) {
  return "# Replay alone against the recording\n\n" +
         section("Each file by itself", replay_all(single_files(data_folder))) + "\n" +
         section("Jobs, their ranks together", replay_all(whole_jobs(data_folder))) + "\n" +
         sensitivity_section(all_sensitivities(data_folder));
}

}  // namespace bubblesim::validation

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--table") {
    if (!bubblesim::validation::has_data(argv[2])) {
      std::fprintf(stderr, "%s: found no INDEX.tsv in it, expected the data folder\n", argv[2]);
      return 2;
    }
    std::fputs(bubblesim::validation::validation_page(argv[2]).c_str(), stdout);
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
