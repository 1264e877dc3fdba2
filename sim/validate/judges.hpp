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

// Pipeline schedules against what is known of them: closed forms, and GraphPipe's case study.

/// A row a schedule: cases (depths 2 to 32, micro-batches p to 8p, several times) that have a
/// closed form, and those whose idle times and peaks equal it exactly.
[[nodiscard]] std::vector<ReportRow> judge_schedules();

/// GraphPipe (arXiv 2406.17145), section 7.5: two branches of four stages on eight devices, one
/// after the other (8 deep) and side by side (4 deep). About 10 % are gained with micro-batches
/// of one size. What twice the size gains besides is its kernels' and is stated, not judged.
[[nodiscard]] Result<std::vector<ReportRow>> judge_graphpipe();

// PipeFill's days (arXiv 2410.07192): a 40B language model trained with 16 pipeline stages, each
// 8-way tensor parallel, and a global batch that stays the same: 82, 34 and 26 days on 1K, 4K and
// 8K GPUs. They fit (m + p - 1) + 3 with p = 16 and m = 64, 16, 8 micro-batches.
//
// The number of iterations is not published, so days are judged as ratios: the days on 1K GPUs are
// set to 82. The machine, the framework and the micro-batch are not published either: V100-32GB,
// Megatron-DeepSpeed, fp16, full recomputation, one sequence of 2048 tokens.

/// Jobs on 1K, 4K, 8K and (nothing published) 2K and 16K GPUs, folded. The note of each has the
/// share of time that stages idle, beside the schedule's own (p-1)/(m+p-1).
[[nodiscard]] CheckedResult<std::vector<ReportRow>> judge_pipefill(const std::string& configs,
                                                                   std::size_t threads);

}  // namespace bubblesim::validate
