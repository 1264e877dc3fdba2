// Evidence that training jobs are judged by, as JSON. The module `bubblesim` hands it to the judge
// (notebooks/lab/parallel.py), which sums errors up.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::validate {

struct TrainingTable;
struct ReportRow;

/// {"table": ..., "rows": [...]}: a TableNote, and a ReportRow each.
[[nodiscard]] Json training_json(const TrainingTable& table, const std::vector<ReportRow>& rows);

struct ValidateRequest {
  std::string configs;
  std::size_t threads = 1;
  /// Says how far a table is; called from any thread, one at a time.
  std::function<void(const std::string& text)> progress;
};

/// The training_json() of a table of measured jobs. `setting`: what it is read with; empty: as its
/// columns say. Faults: those of the file.
[[nodiscard]] CheckedResult<Json> judge_training_file(const std::string& path,
                                                      const std::string& setting,
                                                      const ValidateRequest& request);

}  // namespace bubblesim::validate
