// Tables of measured training jobs, judged row by row.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/validate/predict.hpp"
#include "sim/validate/report.hpp"

namespace bubblesim::validate {

/// A table with its rows' machines.
struct TrainingTable {
  std::string name;
  TableNote note;
  std::vector<TrainingRow> rows;
  /// Machines by cluster and software.
  std::map<std::pair<std::string, std::string>, Testbed> machines;

  [[nodiscard]] const Testbed& machine_of(const TrainingRow& row) const {
    return machines.at({row.cluster, row.plan.software});
  }
};

/// `setting`: a name or path; empty: the one of the table (setting_for()). `configs`: the folder
/// of the machines' files.
[[nodiscard]] CheckedResult<TrainingTable> load_training_table(const std::string& path,
                                                               const std::string& setting,
                                                               const std::string& configs);

/// Called after each row, from any thread, one at a time.
using RowDone = std::function<void(std::size_t done, std::size_t total)>;

/// Seconds where the row has them, else TFLOP/s a GPU.
[[nodiscard]] std::vector<ReportRow> judge_training(const TrainingTable& table,
                                                    std::size_t threads, const RowDone& done);

}  // namespace bubblesim::validate
