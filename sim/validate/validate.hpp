// All evidence that `bubblesim validate parallel` judges, from two folders.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/validate/report.hpp"

namespace bubblesim::validate {

struct ValidateRequest {
  std::string tables;   ///< folder of the measured tables
  std::string data;     ///< folder of the public data
  std::string configs;
  std::string table;    ///< one file instead of everything; empty: everything
  std::string setting;  ///< what that file is read with; empty: as its columns say
  std::string only;     ///< one of validate_names(); empty: all of them
  std::size_t threads = 1;
  /// Says which table and how far; called from any thread, one at a time.
  std::function<void(const std::string& text)> progress;
};

/// Names of all tables and checks, in the order of the report.
[[nodiscard]] std::vector<std::string> validate_names();

struct ParallelReport {
  std::vector<TableNote> tables;  ///< of training jobs
  std::vector<ReportRow> rows;
};

/// Faults: an unknown name, a file that is not there or cannot be read.
[[nodiscard]] CheckedResult<ParallelReport> validate_parallel(const ValidateRequest& request);

}  // namespace bubblesim::validate
