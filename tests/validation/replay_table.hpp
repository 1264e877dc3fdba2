// The errors of replays as a Markdown table.
#pragma once

#include <string>
#include <vector>

#include "tests/validation/recorded_jobs.hpp"

namespace bubblesim::validation {

/// Mean and largest of the jobs' mean errors, over the `count` jobs that were replayed.
struct ReplayErrors {
  std::size_t count = 0;
  double mean = 0;
  double worst = 0;
};

[[nodiscard]] ReplayErrors summarise(const std::vector<Replayed>& replays);

/// One row a job; the row of a job that could not be replayed has the fault.
[[nodiscard]] std::string markdown(const std::vector<Replayed>& replays);

/// The whole page: single files, then jobs, each with its summary.
[[nodiscard]] std::string validation_page(const std::string& data_folder);

}  // namespace bubblesim::validation
