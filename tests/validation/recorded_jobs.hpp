// Replays of recorded jobs, and their errors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/run/load_trace.hpp"
#include "sim/run/parallel.hpp"
#include "sim/workload/job_program.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/replay.hpp"
#include "tests/folders.hpp"
#include "tests/validation/data_folder.hpp"

namespace bubblesim::validation {

/// A job ready to be replayed: its whole recording, once.
struct LoadedJob {
  std::string name;
  workload::JobProgram program;
  hardware::GpuSpec device;
};

/// The outcome of loading and replaying a job.
struct Replayed {
  std::string name;
  bool has_host_calls = false;  ///< false: the waits of operations are not known
  std::string fault;            ///< empty: it was replayed
  workload::ReplayReport report;

  /// Of the rank that has most.
  [[nodiscard]] std::size_t iterations() const {
    std::size_t most = 0;
    for (const auto& rank : report.ranks) most = std::max(most, rank.recorded.size());
    return most;
  }
  /// Mean over ranks.
  [[nodiscard]] double span_error() const {
    double sum = 0;
    for (const auto& rank : report.ranks) sum += rank.span_error();
    return report.ranks.empty() ? 0 : sum / static_cast<double>(report.ranks.size());
  }
};

inline bool has_host_calls(const traces::JobTrace& job) {
  return std::any_of(job.ranks.begin(), job.ranks.end(),
                     [](const auto& rank) { return !rank.host_calls.empty(); });
}

inline Result<LoadedJob> build(const std::string& name, const traces::JobTrace& trace) {
  CounterSet counters;
  auto device = run::device_for_replay(trace, kDeviceFolder, counters);
  if (!device) return tl::unexpected<Error>(device.error().front());
  auto program = workload::build_job_program(trace, *device, {workload::Window::kWhole});
  if (!program) return tl::unexpected<Error>(program.error());
  return LoadedJob{name, std::move(*program), std::move(*device)};
}

inline Replayed replay(const RecordedJob& job) {
  Replayed result;
  result.name = job.name;
  const auto trace = run::load_trace(job.paths);
  if (!trace) {
    result.fault = trace.error().message;
    return result;
  }
  result.has_host_calls = has_host_calls(trace->job);
  if (!result.has_host_calls) return result;
  const auto loaded = build(job.name, trace->job);
  if (!loaded) {
    result.fault = loaded.error().text();
    return result;
  }
  auto report = workload::replay_alone(loaded->program, loaded->device);
  if (!report) {
    result.fault = report.error().text();
  } else {
    result.report = std::move(*report);
  }
  return result;
}

inline Result<LoadedJob> load(const RecordedJob& job) {
  BUBBLESIM_ASSIGN_OR_RETURN(const run::LoadedTrace trace, run::load_trace(job.paths));
  return build(job.name, trace.job);
}

/// Replays all jobs, on every core; the results are in the order of the jobs.
inline std::vector<Replayed> replay_all(const std::vector<RecordedJob>& jobs) {
  std::vector<Replayed> results(jobs.size());
  run::for_each_parallel(jobs.size(), std::thread::hardware_concurrency(),
                         [&](std::size_t i) { results[i] = replay(jobs[i]); });
  return results;
}

}  // namespace bubblesim::validation
