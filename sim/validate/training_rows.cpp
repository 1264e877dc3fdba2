#include "sim/validate/training_rows.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>
#include <variant>

#include "sim/model/training_work.hpp"
#include "sim/synth/plan_file.hpp"
#include "sim/validate/job_name.hpp"

namespace bubblesim::validate {
namespace {

using std::string_view;

// Of both forms, where they are there; besides a device column.
constexpr std::array<string_view, 6> kOptionalColumns{
    "role", "source", "model", "vocabulary", "context_parallelism", "recompute"};

constexpr std::array<string_view, 11> kIterationColumns{
    "hidden_size",         "num_layers",       "attention_heads", "sequence_length",
    "num_gpus",            "global_batch",     "micro_batch",     "tensor_parallelism",
    "pipeline_parallelism", "data_parallelism", "iteration_time_ms"};

constexpr std::array<string_view, 8> kPublishedColumns{
    "hidden_size", "layers",   "attention_heads", "sequence_length",
    "vocabulary",  "num_gpus", "global_batch",    "tflops_per_gpu"};
constexpr std::array<string_view, 6> kPublishedOptional{
    "tensor_parallelism", "pipeline_parallelism", "data_parallelism",
    "micro_batch",        "virtual_stages",       "seconds_per_iteration"};

/// Whole numbers of one row; the first fault is kept.
class RowCounts {
 public:
  RowCounts(const CsvTable& table, std::size_t row, TrainingRow& out)
      : table_(table), row_(row), out_(out) {}

  template <class T>
  void read(string_view column, std::uint32_t most, T& out) {
    const auto value = stated_count(table_, row_, column, most, out_.unpredictable);
    if (value) out = *value;
    else if (fault) fault = tl::make_unexpected(value.error());
  }
  /// Whether the cell holds something; `out` stays where it does not.
  template <class T>
  bool read_if_there(string_view column, std::uint32_t most, T& out) {
    if (table_.text(row_, column).empty()) return false;
    read(column, most, out);
    return true;
  }

  Result<void> fault;

 private:
  const CsvTable& table_;
  std::size_t row_;
  TrainingRow& out_;
};

void read_sizes(RowCounts& counts, string_view layers, TrainingRow& row) {
  counts.read("hidden_size", model::kMaxWidth, row.hidden);
  counts.read(layers, model::kMaxCount, row.layers);
  counts.read("attention_heads", model::kMaxCount, row.heads);
  counts.read("sequence_length", model::kMaxWidth, row.sequence);
  counts.read("num_gpus", synth::kMostRanks, row.gpus);
  counts.read("global_batch", synth::kMostSamples, row.plan.global_batch);
  counts.read_if_there("vocabulary", model::kMaxWidth, row.vocabulary);
  counts.read_if_there("context_parallelism", synth::kMostRanks, row.plan.context);
}

void check_ranks(TrainingRow& row) {
  const synth::PlanSpec& plan = row.plan;
  const std::uint64_t ranks =
      std::uint64_t{plan.tensor} * plan.context * plan.pipeline * plan.data;
  if (ranks == row.gpus) return;
  keep_reason(row.unpredictable,
              fmt::format("{} GPUs are not the {} ranks of tensor {} x context {} x pipeline {} x "
                          "data {}", row.gpus, ranks, plan.tensor, plan.context, plan.pipeline,
                          plan.data));
}

Result<void> read_iteration_form(const CsvTable& table, std::size_t i, TrainingRow& row) {
  RowCounts counts(table, i, row);
  read_sizes(counts, "num_layers", row);
  counts.read("micro_batch", synth::kMostMicroBatch, row.plan.micro_batch);
  counts.read("tensor_parallelism", synth::kMostRanks, row.plan.tensor);
  counts.read("data_parallelism", synth::kMostRanks, row.plan.data);
  counts.read("pipeline_parallelism", synth::kMostRanks, row.plan.pipeline);
  BUBBLESIM_RETURN_IF_ERROR(counts.fault);
  check_ranks(row);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto time, measured_figure(table, i, "iteration_time_ms"));
  if (time) row.seconds = *time * 1e-3;
  return {};
}

struct RecomputeWord {
  string_view word;
  model::Recompute recompute;
  bool sequence_parallel;
};

constexpr std::array<RecomputeWord, 4> kRecomputeWords{
    {{"full", model::Recompute::kFull, false},
     {"selective", model::Recompute::kSelective, false},
     {"selective+sequence", model::Recompute::kSelective, true},
     {"none", model::Recompute::kNone, false}}};

Result<void> read_recompute(const CsvTable& table, std::size_t i, synth::PlanSpec& plan) {
  const string_view text = table.text(i, "recompute");
  if (text.empty()) return {};
  const auto known = std::find_if(kRecomputeWords.begin(), kRecomputeWords.end(),
                                  [&](const RecomputeWord& entry) { return entry.word == text; });
  if (known == kRecomputeWords.end()) {
    return table.fault(i, "recompute",
                       "\"full\", \"selective\", \"selective+sequence\" or \"none\"");
  }
  plan.recompute = known->recompute;
  if (known->sequence_parallel) plan.sequence_parallel = true;
  return {};
}

void set_replicas(TrainingRow& row) {
  const std::uint64_t model_ranks =
      std::uint64_t{row.plan.tensor} * row.plan.pipeline * row.plan.context;
  row.plan.data = static_cast<std::uint32_t>(row.gpus / std::min<std::uint64_t>(model_ranks,
                                                                                row.gpus));
  if (row.gpus % model_ranks == 0) return;
  keep_reason(row.unpredictable,
              fmt::format("{} GPUs are no multiple of {} model-parallel ranks", row.gpus,
                          model_ranks));
}

// Tensor ranks that the source does not give: as many as a node has, the usual choice.
Result<void> read_published_form(const CsvTable& table, std::size_t i, TrainingRow& row) {
  RowCounts counts(table, i, row);
  row.plan.tensor = kNodeGpus;
  row.plan.pipeline = row.plan.context = 1;
  row.plan.micro_batch = row.plan.chunks = 0;
  read_sizes(counts, "layers", row);
  counts.read_if_there("tensor_parallelism", synth::kMostRanks, row.plan.tensor);
  counts.read_if_there("pipeline_parallelism", synth::kMostRanks, row.plan.pipeline);
  counts.read_if_there("micro_batch", synth::kMostMicroBatch, row.plan.micro_batch);
  const bool chunks_known =
      counts.read_if_there("virtual_stages", synth::kMostChunks, row.plan.chunks);
  const bool data_known =
      counts.read_if_there("data_parallelism", synth::kMostRanks, row.plan.data);
  BUBBLESIM_RETURN_IF_ERROR(counts.fault);
  row.chunks_unknown = !chunks_known && row.plan.pipeline > 1;
  if (row.plan.chunks > 1) row.plan.schedule = "interleaved";
  BUBBLESIM_ASSIGN_OR_RETURN(row.tflops_per_gpu, measured_figure(table, i, "tflops_per_gpu"));
  BUBBLESIM_ASSIGN_OR_RETURN(row.seconds, measured_figure(table, i, "seconds_per_iteration"));
  data_known ? check_ranks(row) : set_replicas(row);
  return {};
}

bool same_sizes(const TrainingRow& row, const model::ModelSpec& model) {
  const auto* transformer = std::get_if<model::TransformerSpec>(&model.network);
  return transformer != nullptr && transformer->hidden == row.hidden &&
         transformer->layers == row.layers && transformer->heads == row.heads;
}

std::string machines_of(const TableSetting& setting) {
  std::string out = setting.device;
  for (const MachineSetting& machine : setting.machines) out += ", " + machine.device;
  return out;
}

// By what the setting calls its GPU; then the setting's own (nothing), then that of the device.
const MachineSetting* machine_for(const TableSetting& setting, string_view called,
                                  string_view device) {
  for (const MachineSetting& machine : setting.machines) {
    if (letters_of(machine.gpu) == letters_of(called)) return &machine;
  }
  for (const MachineSetting& machine : setting.machines) {
    if (device != setting.device && machine.device == device) return &machine;
  }
  return nullptr;
}

void take_machine(const CsvTable& table, std::size_t i, const TableSetting& setting,
                  TrainingRow& row) {
  const std::string device = measured_device(table, i, setting.devices, row.unpredictable);
  if (device.empty()) return;
  const string_view called = table.text(i, optional_column(table, kDeviceColumns));
  const MachineSetting* machine = machine_for(setting, called, device);
  if (machine == nullptr && device == setting.device) return;
  if (machine == nullptr) {
    keep_reason(row.unpredictable,
                fmt::format("the setting {} has no machine of {}; it has {}", setting.name, device,
                            machines_of(setting)));
    return;
  }
  row.plan = machine->plan;
  row.cluster = machine->cluster;
}

// The row before its columns are read: what its table, or its machine, says of all rows.
TrainingRow start_of(const CsvTable& table, std::size_t i, const TableSetting& setting) {
  TrainingRow row;
  row.plan = setting.plan;
  row.cluster = setting.cluster;
  row.vocabulary = setting.vocabulary;
  row.place = table.place(i);
  take_machine(table, i, setting, row);
  return row;
}

// Attention's own products, of a causal mask, over what counted_flops() counts.
double uncounted_share(const TrainingRow& row) {
  if (!row.model || !row.model->published) return 0;
  return static_cast<double>(row.layers) * static_cast<double>(row.hidden) *
         static_cast<double>(row.sequence) / row.model->published->value;
}

void check_network(TrainingRow& row) {
  constexpr double kLarge = 0.1;
  const auto parameters = model::parameter_count(network_of(row));
  if (parameters && *parameters > model::kMaxElements) {
    keep_reason(row.unpredictable,
                fmt::format("its network has {:.3g} parameters; expected {:.0e} at most",
                            *parameters, model::kMaxElements));
  }
  if (row.seconds || uncounted_share(row) <= kLarge) return;
  keep_reason(row.unpredictable,
              fmt::format("not sure: attention's products are {:.0f} % of the FLOPs that are "
                          "counted, and whether the source counts them is not known",
                          100 * uncounted_share(row)));
}

std::string label_of(const TrainingRow& row) {
  const synth::PlanSpec& plan = row.plan;
  return fmt::format("h {} L {} s {}, {} GPUs: t {} p {} d {}, batch {} / {}", row.hidden,
                     row.layers, row.sequence, row.gpus, plan.tensor, plan.pipeline, plan.data,
                     plan.global_batch, plan.micro_batch);
}

bool is_timed(const CsvTable& table) { return table.has("iteration_time_ms"); }

Result<TrainingRow> read_row(const CsvTable& table, std::size_t i, const TableSetting& setting) {
  TrainingRow row = start_of(table, i, setting);
  BUBBLESIM_ASSIGN_OR_RETURN(row.role, role_of(table, i));
  BUBBLESIM_RETURN_IF_ERROR(is_timed(table) ? read_iteration_form(table, i, row)
                                            : read_published_form(table, i, row));
  BUBBLESIM_RETURN_IF_ERROR(read_recompute(table, i, row.plan));
  row.plan.sequence = row.sequence;
  const auto model =
      std::find_if(setting.models.begin(), setting.models.end(),
                   [&](const model::ModelFile& file) { return same_sizes(row, file.spec); });
  if (model != setting.models.end()) row.model = *model;
  if (!row.seconds && !row.tflops_per_gpu) {
    keep_reason(row.unpredictable, "the row has no measurement (blank or 0)");
  }
  check_network(row);
  row.plan.name = table.file() + ", " + row.place;
  row.label = label_of(row);
  if (table.has("model")) {
    row.label = fmt::format("{}: {}, {}", table.text(i, "source"), table.text(i, "model"),
                            table.text(i, "recompute"));
  }
  return row;
}

}  // namespace

CheckedResult<std::vector<TrainingRow>> training_rows(const CsvTable& table,
                                                      const TableSetting& setting) {
  if (!is_timed(table) && !table.has("tflops_per_gpu")) {
    return fail(table.file(), "line 1", "expected a column iteration_time_ms or tflops_per_gpu");
  }
  BUBBLESIM_RETURN_IF_ERROR(is_timed(table) ? table.expect(kIterationColumns)
                                            : table.expect(kPublishedColumns));
  std::vector<TrainingRow> rows;
  Errors errors;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    rows.push_back(take<TrainingRow>(read_row(table, i, setting), errors));
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return rows;
}

std::vector<std::string> unread_training_columns(const CsvTable& table) {
  std::vector<string_view> read(kOptionalColumns.begin(), kOptionalColumns.end());
  const auto add = [&](const auto& columns) {
    read.insert(read.end(), columns.begin(), columns.end());
  };
  if (is_timed(table)) {
    add(kIterationColumns);
  } else {
    add(kPublishedColumns);
    add(kPublishedOptional);
  }
  const std::string device = optional_column(table, kDeviceColumns);
  read.push_back(device);
  return columns_besides(table, read);
}

model::ModelSpec network_of(const TrainingRow& row) {
  return row.model ? row.model->spec
                   : model::gpt(row.hidden, row.layers, row.heads, row.vocabulary, row.sequence);
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
