#include "tests/validation/sensitivity_table.hpp"

#include <cstdio>
#include <set>

#include "sim/run/load_trace.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/sensitivity.hpp"
#include "tests/folders.hpp"
#include "traces/inspect/render_text.hpp"

namespace bubblesim::validation {
namespace {

using traces::Bottleneck;

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

}  // namespace

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

}  // namespace bubblesim::validation
