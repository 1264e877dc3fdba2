// What the iteration time of each recorded job depends on.
#pragma once

#include <string>
#include <vector>

#include "tests/validation/recorded_jobs.hpp"
#include "traces/inspect/inspection.hpp"

namespace bubblesim::validation {

/// A job's sensitivities beside what its devices do.
struct JobSensitivities {
  std::string name;
  std::string fault;  ///< empty: it was replayed
  traces::Sensitivities found;
  traces::DeviceShares shares;
  /// Iteration time with both kernels and hosts twice as fast, as a share of that as recorded.
  double with_both_twice = 1;
};

/// Of every job with host calls: whole jobs, then each file that belongs to none of them.
[[nodiscard]] std::vector<JobSensitivities> all_sensitivities(const std::string& data_folder);

/// One row a job, in Markdown; what is near zero says why.
[[nodiscard]] std::string sensitivity_section(const std::vector<JobSensitivities>& jobs);

}  // namespace bubblesim::validation
