#include "tests/conformance/recorded_jobs/job_figures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <memory>
#include <thread>

#include "policies/builtin.hpp"
#include "sim/run/load_trace.hpp"
#include "sim/run/parallel.hpp"
#include "sim/run/run_inputs.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/replay.hpp"
#include "sim/workload/sensitivity.hpp"
#include "tests/folders.hpp"
#include "traces/inspect/inspection.hpp"

namespace bubblesim::testing {
namespace {

// Stands for a GPU that no device file lists: a recorded job alone does not use its constants.
constexpr const char* kAnyDevice = "a100-80gb";
// Passes of the job that are measured, and passes before them: enough that a window that ends
// within a pass moves no share by a point.
constexpr std::int64_t kPasses = 40;
constexpr std::int64_t kWarmup = 4;

Error first(const Errors& faults) { return faults.front(); }

void add_inspection(const traces::JobTrace& trace, JobFigures& figures) {
  const traces::JobInspection inspection = traces::inspect_job(trace);
  figures.recorded = inspection.iterations_recorded;
  figures.used = inspection.iterations_used;
  figures.inspect = inspection.iteration_time;
  double ranks = 0;
  for (const traces::RankInspection& rank : inspection.ranks) {
    const traces::WindowUse& use = rank.representative();
    if (use.length == Duration{}) continue;
    ++ranks;
    figures.busy += to_seconds(use.busy) / to_seconds(use.length);
    figures.own += to_seconds(use.own) / to_seconds(use.length);
  }
  if (ranks == 0) return;
  figures.busy /= ranks;
  figures.own /= ranks;
  figures.inspect_bubbles = 1 - figures.own;
}

Result<double> sensitivity(const workload::JobProgram& job, const hardware::GpuSpec& device,
                           Duration unchanged,
                           std::initializer_list<workload::WhatIfTarget> targets) {
  BUBBLESIM_ASSIGN_OR_RETURN(const Duration faster,
                             workload::iteration_with(targets, job, device));
  if (unchanged == Duration{}) return 0.0;
  return 2 * (1 - to_seconds(faster) / to_seconds(unchanged));
}

Result<void> add_replay(const traces::JobTrace& trace, JobFigures& figures) {
  CounterSet counters;
  const auto device = run::device_for_replay(trace, kDeviceFolder, counters);
  if (!device) return tl::unexpected<Error>(first(device.error()));
  figures.device_assumed = counters.count(run::kDeviceAssumed.name) > 0;
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto job, workload::build_job_program(trace, *device, {workload::Window::kIterations}));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto report, workload::repeat_alone(job, *device));
  figures.replay = workload::mean_iteration(report);
  traces::Explanation explained;
  for (const traces::Explanation& rank : job.explained) explained.add(rank);
  figures.unexplained = explained.share();
  Sensitivities& found = figures.sensitivities;
  const auto at = [&](std::initializer_list<workload::WhatIfTarget> targets) {
    return sensitivity(job, *device, figures.replay, targets);
  };
  using enum workload::WhatIfTarget;
  BUBBLESIM_ASSIGN_OR_RETURN(found.kernels, at({kAllKernels}));
  BUBBLESIM_ASSIGN_OR_RETURN(found.host, at({kHost}));
  BUBBLESIM_ASSIGN_OR_RETURN(found.link, at({kLink}));
  BUBBLESIM_ASSIGN_OR_RETURN(const double all, at({kAllKernels, kCopies, kHost, kLink}));
  found.fixed = 1 - all;
  return {};
}

// The longest of the ranks' passes, as recorded.
Duration pass_of(const workload::JobProgram& job) {
  Duration longest{};
  for (const program::Program& rank : job.ranks) {
    Duration host{};
    for (const Duration time : rank.recorded_iterations) host += time;
    longest = std::max({longest, host, rank.recorded_device_span});
  }
  return longest;
}

// Of the marked thread, its own time; of the rank, that of collectives from the last arrival on.
// Mean over ranks.
void add_shares(const workload::JobProgram& job, Duration pass, JobFigures& figures) {
  const double whole = to_seconds(pass) * static_cast<double>(job.ranks.size());
  for (const program::Program& rank : job.ranks) {
    for (const program::Step& step : rank.threads[rank.marked_thread].steps) {
      figures.host += to_seconds(step.think.duration() + step.cost.duration()) / whole;
    }
    for (const program::Op& op : rank.ops) {
      if (op.collective != program::kNoIndex) figures.link += to_seconds(op.duration) / whole;
    }
  }
}

Result<void> add_run(const validation::RecordedJob& job, JobFigures& figures) {
  const policy::Registry registry = policies::builtin_policies();
  run::RunConfig config;
  config.name = job.name;
  config.training.traces = job.paths;
  if (figures.device_assumed) config.device = kAnyDevice;
  config.policies = {{"exclusive", {}}};
  auto inputs = run::load_training(config, kDeviceFolder, {});
  if (!inputs) return tl::unexpected<Error>(first(inputs.error()));
  const Duration pass = pass_of(*inputs->training);
  if (pass > Duration{}) add_shares(*inputs->training, pass, figures);
  config.warmup = kWarmup * pass;
  config.duration = (kWarmup + kPasses) * pass;
  const auto loaded =
      run::assemble_run(config, std::make_shared<const run::LoadedTraining>(*std::move(inputs)),
                        kDeviceFolder);
  if (!loaded) return tl::unexpected<Error>(first(loaded.error()));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto report, run::run_policies(*loaded, registry, {}));
  const observe::PolicyResult& exclusive = report.policies.front();
  figures.run = exclusive.training.mean_iteration;
  for (const observe::GpuUse& gpu : exclusive.gpus) figures.run_bubbles += gpu.bubble_fraction;
  figures.run_bubbles /= static_cast<double>(exclusive.gpus.size());
  return {};
}

}  // namespace

double JobFigures::spread() const {
  const std::array<Duration, 3> times{inspect, replay, run};
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  return *least == Duration{} ? (*most == Duration{} ? 0 : 1)
                              : to_seconds(*most) / to_seconds(*least) - 1;
}

Result<JobFigures> figures_of(const validation::RecordedJob& job) {
  JobFigures figures;
  {
    BUBBLESIM_ASSIGN_OR_RETURN(const run::LoadedTrace trace, run::load_trace(job.paths));
    figures.ranks = trace.job.ranks.size();
    add_inspection(trace.job, figures);
    BUBBLESIM_RETURN_IF_ERROR(add_replay(trace.job, figures));
  }
  BUBBLESIM_RETURN_IF_ERROR(add_run(job, figures));
  return figures;
}

namespace {

double milliseconds(Duration time) { return 1e3 * to_seconds(time); }

std::string rules_cell(const JobRow& row) {
  std::string text;
  for (const BrokenRule& rule : broken_rules(row.figures)) {
    text += (text.empty() ? "" : "; ") + rule.text;
  }
  return text;
}

using BrokenRules = std::vector<BrokenRule>;

void check_share(const char* name, double share, BrokenRules& broken) {
  if (share >= -kRoundingOfShares && share <= 1 + kRoundingOfShares) return;
  broken.push_back({Rule::kShares, fmt::format("sensitivity to {} is {:.4f}", name, share)});
}

void check_busy(const char* name, double busy, double share, double least, BrokenRules& broken) {
  if (busy <= kBusyAbove || share > least) return;
  broken.push_back({Rule::kBusy, fmt::format("{} busy {:.1f} %, sensitivity {:.4f}", name,
                                             100 * busy, share)});
}

}  // namespace

std::vector<BrokenRule> broken_rules(const Result<JobFigures>& result) {
  if (!result) return {{Rule::kReadable, result.error().message}};
  const JobFigures& figures = *result;
  BrokenRules broken;
  if (figures.spread() > kTimesAgreeWithin) {
    broken.push_back({Rule::kTimes, fmt::format("iteration times {:.3f} % apart",
                                                100 * figures.spread())});
  }
  const Sensitivities& shares = figures.sensitivities;
  check_share("kernels", shares.kernels, broken);
  check_share("host", shares.host, broken);
  check_share("link", shares.link, broken);
  check_share("nothing", shares.fixed, broken);
  if (shares.sum() > 1 + kRoundingOfShares) {
    broken.push_back({Rule::kShares, fmt::format("sensitivities add up to {:.4f}", shares.sum())});
  }
  check_busy("own operations", figures.own, shares.kernels, kLeastOfBusyKernels, broken);
  check_busy("host", figures.host, shares.host, kRoundingOfShares, broken);
  check_busy("collectives", figures.link, shares.link, kRoundingOfShares, broken);
  const double apart = figures.run_bubbles - figures.inspect_bubbles;
  if (std::abs(apart) > kBubblesAgreeWithin) {
    broken.push_back({Rule::kBubbles, fmt::format("bubbles {:+.2f} points apart", 100 * apart)});
  }
  return broken;
}

std::vector<JobRow> rows_of(const std::string& data_folder) {
  const std::vector<validation::RecordedJob> jobs = validation::every_job(data_folder);
  std::vector<JobRow> rows(jobs.size());
  run::for_each_parallel(jobs.size(), std::thread::hardware_concurrency(), [&](std::size_t i) {
    rows[i] = {jobs[i].name, figures_of(jobs[i])};
  });
  return rows;
}

std::string markdown(const std::vector<JobRow>& rows) {
  std::string text =
      "<!-- generated by: scripts/check-recorded-jobs -->\n# Recorded jobs\n\n"
      "| job | ranks | used / recorded | iteration ms | apart % | bubbles % | kernels | host "
      "| link | fixed | unexplained % | broken rules |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n";
  for (const JobRow& row : rows) {
    const std::string rules = rules_cell(row);
    if (!row.figures) {
      text += fmt::format("| {} | | | | | | | | | | | {} |\n", row.name, rules);
      continue;
    }
    const JobFigures& f = *row.figures;
    text += fmt::format(
        "| {} | {} | {}/{} | {:.3f} | {:.3f} | {:.1f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.2f} "
        "| {}|\n",
        row.name, f.ranks, f.used, f.recorded, milliseconds(f.replay), 100 * f.spread(),
        100 * f.inspect_bubbles, f.sensitivities.kernels, f.sensitivities.host,
        f.sensitivities.link, f.sensitivities.fixed, 100 * f.unexplained,
        rules.empty() ? "" : rules + " ");
  }
  return text;
}

std::string tsv(const std::vector<JobRow>& rows) {
  std::string text =
      "job\tranks\titerations_used\titerations_recorded\tinspect_ns\treplay_ns\trun_ns\t"
      "busy_fraction\town_fraction\thost_fraction\tlink_fraction\t"
      "inspect_bubble_fraction\trun_bubble_fraction\t"
      "kernels_sensitivity\thost_sensitivity\tlink_sensitivity\tfixed_share\t"
      "unexplained_fraction\tdevice_assumed\trules\n";
  for (const JobRow& row : rows) {
    const JobFigures f = row.figures.value_or(JobFigures{});
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t", row.name, f.ranks, f.used, f.recorded,
                        to_ns(f.inspect), to_ns(f.replay), to_ns(f.run));
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t", f.busy, f.own, f.host, f.link,
                        f.inspect_bubbles, f.run_bubbles);
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\n", f.sensitivities.kernels,
                        f.sensitivities.host, f.sensitivities.link, f.sensitivities.fixed,
                        f.unexplained,
                        f.device_assumed ? 1 : 0, rules_cell(row));
  }
  return text;
}

}  // namespace bubblesim::testing
