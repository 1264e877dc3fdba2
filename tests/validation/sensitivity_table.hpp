// The sensitivities of the iteration time of each recorded job.
#pragma once

#include <string>
#include <vector>

#include "tests/validation/recorded_jobs.hpp"
#include "traces/inspect/inspection.hpp"

namespace bubblesim::validation {

/// A job's sensitivities, with the shares of its devices' time.
struct JobSensitivities {
  std::string name;
  std::string fault;  ///< empty: it was replayed
  traces::Sensitivities found;
  traces::DeviceShares shares;
  /// Iteration time with both kernels and hosts twice as fast, over the unchanged one.
  double with_both_twice = 1;
};

/// One result for every job with host calls: whole jobs, then each file that belongs to no job.
[[nodiscard]] std::vector<JobSensitivities> all_sensitivities(const std::string& data_folder);

/// One row a job, in Markdown, with the reasons for sensitivities near zero.
[[nodiscard]] std::string sensitivity_section(const std::vector<JobSensitivities>& jobs);

}  // namespace bubblesim::validation
