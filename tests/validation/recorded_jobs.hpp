// Replays of recorded jobs, and their errors.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/job_program.hpp"
#include "sim/workload/replay.hpp"
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

  [[nodiscard]] std::size_t iterations() const;  ///< of the rank that has most
  [[nodiscard]] double span_error() const;       ///< mean over ranks
};

[[nodiscard]] Result<LoadedJob> load(const RecordedJob& job);

/// Replays all jobs, on every core; the results are in the order of the jobs.
[[nodiscard]] std::vector<Replayed> replay_all(const std::vector<RecordedJob>& jobs);

}  // namespace bubblesim::validation
