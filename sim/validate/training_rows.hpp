// Measured training jobs: a table's rows as jobs that can be synthesised, with what was measured.
//
// Two forms of columns are understood, told apart by their names:
//  - iteration_time_ms with num_gpus, global_batch, micro_batch, hidden_size, attention_heads,
//    num_layers, sequence_length and the three parallel sizes (vTrain, MICRO 2024);
//  - tflops_per_gpu or seconds_per_iteration with the model, its plan and its GPU, where a plan's
//    size may be empty (published runs; see fill_unknown()).
// What a table's columns do not say (cluster, software, recomputation) is its setting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/csv_table.hpp"
#include "sim/base/result.hpp"
#include "sim/model/model_file.hpp"
#include "sim/synth/plan_spec.hpp"
#include "sim/validate/row_role.hpp"
#include "sim/validate/table_cells.hpp"

namespace bubblesim::validate {

/// GPUs of a node on the tables' systems. Tensor ranks stay in a node where a source is silent.
inline constexpr std::uint32_t kNodeGpus = 8;

/// What rows on one kind of GPU share, where a table names several.
struct MachineSetting {
  std::string gpu;               ///< as tables call it, besides names of its device
  std::string cluster;           ///< a file of configs/clusters
  std::string device;            ///< the cluster's: a file of configs/devices
  synth::PlanSpec plan;          ///< instead of the table's
};

/// What every row of a table shares; configs/validation/*.json.
struct TableSetting {
  std::string name;
  std::string path;
  std::string cluster;           ///< a file of configs/clusters
  std::string device;            ///< the cluster's
  synth::PlanSpec plan;          ///< what rows do not override
  std::uint64_t vocabulary = 51200;
  std::vector<MachineSetting> machines;  ///< of rows on other devices than the table's own
  DeviceNames devices;
  std::vector<model::ModelFile> models;  ///< rows of their sizes are they; others are GPTs
};

struct TrainingRow {
  RowRole role = RowRole::kJudge;
  std::string label;             ///< "GPT 175B, 512 GPUs, t 8, p 16, d 4"
  std::string place;             ///< "line 12"
  std::uint64_t hidden = 0;
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;
  std::uint64_t vocabulary = 0;
  std::uint64_t sequence = 0;
  std::uint32_t gpus = 0;
  std::string cluster;           ///< a file of configs/clusters
  std::optional<model::ModelFile> model;  ///< nothing: a GPT of the sizes above
  synth::PlanSpec plan;          ///< micro_batch 0: not known
  bool chunks_unknown = false;   ///< the source does not say how many stages a rank holds
  std::string unpredictable;     ///< why nothing can be said of the row; empty: it can
  std::optional<double> seconds;         ///< measured, an iteration
  std::optional<double> tflops_per_gpu;  ///< measured
};

/// Rows of either form. Fault: neither form's columns are there, or a cell cannot be read. Stated
/// are rows without a measurement, on a device that the setting has no machine of, of sizes beyond
/// the ranges of model files and plans, and of other GPUs than their parallel sizes make.
[[nodiscard]] CheckedResult<std::vector<TrainingRow>> training_rows(const CsvTable& table,
                                                                    const TableSetting& setting);

/// Columns of the table that its form does not read, in their order.
[[nodiscard]] std::vector<std::string> unread_training_columns(const CsvTable& table);

/// The row's network: its model, or a GPT of its sizes.
[[nodiscard]] model::ModelSpec network_of(const TrainingRow& row);

/// FLOPs of an iteration as the tables count them. A GPT: 96 B s l h^2 (1 + s/6h + V/16lh) with
/// full recomputation, 72 without (Narayanan et al., SC 2021, section 5.1). Another model: 6 N B s
/// with its published parameters N, as scaling laws count; attention's own products, 4 % of Llama 3
/// 405B's at 8192 tokens, are not in it. If they are more than a tenth, rows of which TFLOP/s are
/// all that was measured are stated: whether the source counts them is not known.
[[nodiscard]] double counted_flops(const TrainingRow& row);

}  // namespace bubblesim::validate
