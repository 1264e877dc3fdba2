// What `scripts/judge parallel` judges, one kind of evidence each, row by row.
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

// Tables of training jobs, row by row.

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

// Measured all-reduce tables of one node, row by row.

/// The folder of the tables in the public data, and the cluster that they are of.
inline constexpr const char* kAllReduceFolder = "VIA-Research+vTrain/trace/a100";
inline constexpr const char* kAllReduceCluster = "dgx-a100-80gb";

/// Rings, as network::judge_all_reduce() takes them; `fit` rows are network::is_fit_row(). Sizes
/// that are powers of two are brief. `data`: the folder of public data.
[[nodiscard]] CheckedResult<std::vector<ReportRow>> judge_all_reduces(const std::string& data,
                                                                      const std::string& configs);

}  // namespace bubblesim::validate
