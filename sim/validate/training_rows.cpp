#include "sim/validate/training_rows.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>
#include <variant>

namespace bubblesim::validate {
namespace {

/// Whole numbers of one row; the first fault is kept.
class RowCounts {
 public:
  RowCounts(const CsvTable& table, std::size_t row) : table_(table), row_(row) {}

  template <class T>
  void read(std::string_view column, T& out) {
    const auto value = table_.count(row_, column);
    if (value) out = static_cast<T>(*value);
    else if (fault) fault = tl::make_unexpected(value.error());
  }
  /// Whether the cell holds something; `out` stays where it does not.
  template <class T>
  bool read_if_there(std::string_view column, T& out) {
    if (table_.text(row_, column).empty()) return false;
    read(column, out);
    return true;
  }

  Result<void> fault;

 private:
  const CsvTable& table_;
  std::size_t row_;
};

Result<void> read_iteration_form(const CsvTable& table, std::size_t i, TrainingRow& row) {
  RowCounts counts(table, i);
  counts.read("hidden_size", row.hidden);
  counts.read("attention_heads", row.heads);
  counts.read("num_layers", row.layers);
  counts.read("sequence_length", row.sequence);
  counts.read("num_gpus", row.gpus);
  counts.read("global_batch", row.plan.global_batch);
  counts.read("micro_batch", row.plan.micro_batch);
  counts.read("tensor_parallelism", row.plan.tensor);
  counts.read("data_parallelism", row.plan.data);
  counts.read("pipeline_parallelism", row.plan.pipeline);
  BUBBLESIM_RETURN_IF_ERROR(counts.fault);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto time, table.number(i, "iteration_time_ms"));
  if (time) row.seconds = *time * 1e-3;
  return {};
}

Result<void> read_recompute(const CsvTable& table, std::size_t i, synth::PlanSpec& plan) {
  const std::string_view text = table.text(i, "recompute");
  if (text == "full") {
    plan.recompute = model::Recompute::kFull;
  } else if (text.starts_with("selective")) {
    plan.recompute = model::Recompute::kSelective;
  } else if (text == "none" || text.empty()) {
    plan.recompute = model::Recompute::kNone;
  } else {
    return table.fault(i, "recompute",
                       "\"full\", \"selective\", \"selective+sequence\" or \"none\"");
  }
  if (text.ends_with("+sequence")) plan.sequence_parallel = true;
  return {};
}

void set_replicas(TrainingRow& row) {
  const std::uint64_t model_ranks =
      std::uint64_t{row.plan.tensor} * row.plan.pipeline * row.plan.context;
  row.plan.data = static_cast<std::uint32_t>(row.gpus / std::min<std::uint64_t>(model_ranks,
                                                                                row.gpus));
  if (row.gpus % model_ranks == 0) return;
  row.unpredictable = fmt::format("{} GPUs are no multiple of {} model-parallel ranks", row.gpus,
                                  model_ranks);
}

// Tensor ranks that the source does not give: as many as a node has, the usual choice.
Result<void> read_published_form(const CsvTable& table, std::size_t i, TrainingRow& row) {
  RowCounts counts(table, i);
  counts.read("hidden_size", row.hidden);
  counts.read("layers", row.layers);
  counts.read("attention_heads", row.heads);
  counts.read("sequence_length", row.sequence);
  counts.read("vocabulary", row.vocabulary);
  counts.read("num_gpus", row.gpus);
  counts.read("global_batch", row.plan.global_batch);
  row.plan.tensor = kNodeGpus;
  row.plan.pipeline = row.plan.context = 1;
  row.plan.micro_batch = row.plan.chunks = 0;
  counts.read_if_there("tensor_parallelism", row.plan.tensor);
  counts.read_if_there("pipeline_parallelism", row.plan.pipeline);
  counts.read_if_there("micro_batch", row.plan.micro_batch);
  counts.read_if_there("context_parallelism", row.plan.context);
  const bool chunks_known = counts.read_if_there("virtual_stages", row.plan.chunks);
  BUBBLESIM_RETURN_IF_ERROR(counts.fault);
  row.chunks_unknown = !chunks_known && row.plan.pipeline > 1;
  if (row.plan.chunks > 1) row.plan.schedule = "interleaved";
  BUBBLESIM_RETURN_IF_ERROR(read_recompute(table, i, row.plan));
  BUBBLESIM_ASSIGN_OR_RETURN(row.tflops_per_gpu, table.number(i, "tflops_per_gpu"));
  BUBBLESIM_ASSIGN_OR_RETURN(row.seconds, table.number(i, "seconds_per_iteration"));
  set_replicas(row);
  return {};
}

bool same_sizes(const TrainingRow& row, const model::ModelSpec& model) {
  const auto* transformer = std::get_if<model::TransformerSpec>(&model.network);
  return transformer != nullptr && transformer->hidden == row.hidden &&
         transformer->layers == row.layers && transformer->heads == row.heads;
}

// The row before its columns are read: what its table, or its machine, says of all rows.
TrainingRow start_of(const CsvTable& table, std::size_t i, const TableSetting& setting) {
  TrainingRow row;
  row.plan = setting.plan;
  row.cluster = setting.cluster;
  row.vocabulary = setting.vocabulary;
  row.gpu = table.text(i, "gpu");
  row.place = table.place(i);
  for (const MachineSetting& machine : setting.machines) {
    if (machine.gpu != row.gpu) continue;
    row.plan = machine.plan;
    row.cluster = machine.cluster;
  }
  return row;
}

std::string label_of(const TrainingRow& row) {
  const synth::PlanSpec& plan = row.plan;
  return fmt::format("h {} L {} s {}, {} GPUs: t {} p {} d {}, batch {} / {}", row.hidden,
                     row.layers, row.sequence, row.gpus, plan.tensor, plan.pipeline, plan.data,
                     plan.global_batch, plan.micro_batch);
}

}  // namespace

Result<std::vector<TrainingRow>> training_rows(const CsvTable& table,
                                               const TableSetting& setting) {
  const bool timed = table.has("iteration_time_ms");
  if (!timed && !table.has("tflops_per_gpu")) {
    return fail(table.file(), "line 1", "expected a column iteration_time_ms or tflops_per_gpu");
  }
  std::vector<TrainingRow> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    TrainingRow row = start_of(table, i, setting);
    BUBBLESIM_ASSIGN_OR_RETURN(row.role, role_of(table, i));
    BUBBLESIM_RETURN_IF_ERROR(timed ? read_iteration_form(table, i, row)
                                    : read_published_form(table, i, row));
    row.plan.sequence = row.sequence;
    const auto model = std::find_if(
        setting.models.begin(), setting.models.end(),
        [&](const model::ModelFile& file) { return same_sizes(row, file.spec); });
    if (model != setting.models.end()) row.model = *model;
    if (!row.seconds && !row.tflops_per_gpu) row.unpredictable = "the row has no measurement";
    row.plan.name = table.file() + ", " + row.place;
    row.label = label_of(row);
    if (table.has("model")) {
      row.label = fmt::format("{}: {}, {}", table.text(i, "source"), table.text(i, "model"),
                              table.text(i, "recompute"));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

double counted_flops(const TrainingRow& row) {
  if (row.model && row.model->published) {
    return 6 * row.model->published->value * static_cast<double>(row.plan.global_batch) *
           static_cast<double>(row.sequence);
  }
  const double h = static_cast<double>(row.hidden), s = static_cast<double>(row.sequence);
  const double l = row.layers, v = static_cast<double>(row.vocabulary);
  const double passes = row.plan.recompute == model::Recompute::kFull ? 96 : 72;
  const double head = row.plan.recompute == model::Recompute::kFull ? 16 : 12;
  return passes * static_cast<double>(row.plan.global_batch) * s * l * h * h *
         (1 + s / (6 * h) + v / (head * l * h));
}

}  // namespace bubblesim::validate
