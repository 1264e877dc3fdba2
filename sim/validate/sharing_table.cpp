#include "sim/validate/sharing_table.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "sim/base/data_file.hpp"
#include "sim/base/json_reader.hpp"

namespace bubblesim::validate {
namespace {

using Row = SharingRow;

Result<double> positive(const CsvTable& table, std::size_t row, std::string_view column) {
  const auto value = table.figure(row, column);
  if (value && *value > 0) return *value;
  return table.fault(row, column, "a number above 0");
}

// A cell of a table of which the row is made.
struct Cells {
  const CsvTable& table;
  std::size_t row;
  const SharingSetting& setting;

  [[nodiscard]] std::string text(std::string_view column) const {
    return std::string(table.text(row, column));
  }
  [[nodiscard]] Result<double> number(std::string_view column) const {
    return positive(table, row, column);
  }
  [[nodiscard]] Result<std::uint32_t> count(std::string_view column, std::uint32_t most) const {
    const auto value = table.count(row, column);
    if (value && *value <= most) return static_cast<std::uint32_t>(*value);
    return table.fault(row, column, "a whole number from 1 to " + std::to_string(most));
  }
};

constexpr std::uint32_t kMostBatch = 1U << 16U;
constexpr std::uint32_t kMostClients = 64;
constexpr std::uint32_t kMostSlices = 7;

Result<void> add_figure(Row& out, const Cells& cells, std::string_view column,
                        SharingFigure figure) {
  BUBBLESIM_ASSIGN_OR_RETURN(figure.measured, cells.number(column));
  figure.metric = column;
  out.figures.push_back(std::move(figure));
  return {};
}

// A client alone, as its workload says: not scaled to what it is judged by.
Result<void> add_alone(Row& out, SharingClient client) {
  out.system = "alone";
  SharingFigure figure{"mean_ms", Quantity::kMean};
  figure.measured = std::exchange(client.solo_ms, 0);
  client.pace = Pace::kLoop;
  client.epoch = 0;
  out.clients = {std::move(client)};
  out.figures = {std::move(figure)};
  return {};
}

// ---- an inference service beside a training job

constexpr std::array<std::string_view, 10> kPairColumns = {
    "inference_throughput_rel", "training_throughput_rel", "avg_ms",   "p90_ms", "p95_ms",
    "p99_ms",                   "inference",               "training", "system", "solo_avg_ms"};

Result<void> read_pair(Row& out, const Cells& cells) {
  const std::array<SharingFigure, 6> kinds = {{{{}, Quantity::kShare, 0},
                                               {{}, Quantity::kShare, 1},
                                               {{}, Quantity::kMean, 0},
                                               {{}, Quantity::kPercentile, 0, 90},
                                               {{}, Quantity::kPercentile, 0, 95},
                                               {{}, Quantity::kPercentile, 0, 99}}};
  SharingClient service{WorkloadRole::kInference, cells.text("inference")};
  BUBBLESIM_ASSIGN_OR_RETURN(service.solo_ms, cells.number("solo_avg_ms"));
  service.pace = Pace::kEven;
  service.per_s = 1e3 * cells.setting.load / service.solo_ms;
  out.subject = service.workload + " beside " + cells.text("training");
  out.clients = {service, {WorkloadRole::kTraining, cells.text("training")}};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    BUBBLESIM_RETURN_IF_ERROR(add_figure(out, cells, kPairColumns[i], kinds[i]));
  }
  return {};
}

// ---- two programs, each with rows of its own, and rows of each alone

constexpr std::array<std::string_view, 9> kCotrainingColumns = {
    "case", "job", "system", "per_s", "relative_to_alone", "mean_ms", "p50_ms", "p95_ms", "p99_ms"};

// The row of the same case and job alone.
std::optional<std::size_t> alone_row(const Cells& cells, std::string_view job) {
  for (std::size_t i = 0; i < cells.table.rows(); ++i) {
    if (cells.table.text(i, "case") == cells.table.text(cells.row, "case") &&
        cells.table.text(i, "job") == job && cells.table.text(i, "system") == "alone") {
      return i;
    }
  }
  return std::nullopt;
}

Result<SharingClient> cotraining_client(const Cells& cells, std::string_view job) {
  const auto alone = alone_row(cells, job);
  if (!alone) return cells.table.fault(cells.row, "case", "a case with a row of each job alone");
  const Cells solo{cells.table, *alone, cells.setting};
  SharingClient out{WorkloadRole::kTraining, cells.text("case") + " " + std::string(job)};
  BUBBLESIM_ASSIGN_OR_RETURN(out.solo_ms, solo.number("mean_ms"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.per_s, solo.number("per_s"));
  // Whoever leaves the GPU alone idle for most of the time is paced by a clock, not by its work.
  if (out.per_s * out.solo_ms < 1e3 / 2) out.pace = Pace::kPeriodic;
  if (out.pace == Pace::kLoop) {
    out.epoch = cells.setting.epoch;
    if (out.epoch > 0) {
      out.pause_ms = 1e3 * to_seconds(cells.setting.epoch_pause);
      out.between_ms = 1e3 * to_seconds(cells.setting.step_pause);
      out.feed_ms = std::max(0.0, 1e3 / out.per_s - out.pause_ms / out.epoch);
    }
    out.per_s = 0;
  }
  return out;
}

Result<void> read_cotraining(Row& out, const Cells& cells) {
  const std::array<std::string_view, 2> jobs = {"production", "opportunistic"};
  const std::string job = cells.text("job");
  const auto at = static_cast<std::size_t>(std::find(jobs.begin(), jobs.end(), job) - jobs.begin());
  if (at == jobs.size()) {
    return cells.table.fault(cells.row, "job", "production or opportunistic");
  }
  out.subject = cells.text("case") + ", " + job;
  for (const std::string_view name : jobs) {
    BUBBLESIM_ASSIGN_OR_RETURN(SharingClient client, cotraining_client(cells, name));
    out.clients.push_back(std::move(client));
  }
  if (out.system == "alone") return add_alone(out, out.clients[at]);
  const std::array<SharingFigure, 5> kinds = {{{{}, Quantity::kShare, at},
                                               {{}, Quantity::kMean, at},
                                               {{}, Quantity::kPercentile, at, 50},
                                               {{}, Quantity::kPercentile, at, 95},
                                               {{}, Quantity::kPercentile, at, 99}}};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    BUBBLESIM_RETURN_IF_ERROR(add_figure(out, cells, kCotrainingColumns[i + 4], kinds[i]));
  }
  return {};
}

// ---- contexts that take turns: a case in words, one figure a row

constexpr std::array<std::string_view, 6> kSliceColumns = {"gpu",     "case",  "metric",
                                                           "clients", "alone", "shared"};

// "the same" is the case of the row before; ends[0] of "two closed loops, ResNet-152" is its job.
std::string case_of(const Cells& cells) {
  for (std::size_t i = cells.row + 1; i-- > 0;) {
    const std::string_view text = cells.table.text(i, "case");
    if (text != "the same") return std::string(text);
  }
  return {};
}

std::optional<double> rate_in(std::string_view text) {
  const auto end = text.find("/s");
  if (end == std::string_view::npos) return std::nullopt;
  auto from = end;
  while (from > 0 && (std::isdigit(static_cast<unsigned char>(text[from - 1])) != 0 ||
                      text[from - 1] == '.')) {
    --from;
  }
  if (from == end) return std::nullopt;
  return std::stod(std::string(text.substr(from, end - from)));
}

// "samples_per_s", "mean_s", "p95_ms", "median_iteration_ms": what of the clients, in which unit.
struct SliceMetric {
  SharingFigure figure;
  double ms = 1;      ///< of the table's unit
  bool rate = false;  ///< a rate, whose inverse is a time
};

std::optional<SliceMetric> slice_metric(std::string_view metric) {
  if (metric == "samples_per_s") return SliceMetric{{{}, Quantity::kSum}, 1e3, true};
  if (metric == "mean_s") return SliceMetric{{{}, Quantity::kMean}, 1e3};
  if (metric == "mean_ms") return SliceMetric{{{}, Quantity::kMean}};
  if (metric == "median_iteration_ms") return SliceMetric{{{}, Quantity::kPercentile, 0, 50}};
  if (metric.size() > 4 && metric.front() == 'p' && metric.ends_with("_ms")) {
    const std::string digits(metric.substr(1, metric.size() - 4));
    const bool number = std::all_of(digits.begin(), digits.end(), [](unsigned char c) {
      return std::isdigit(c) != 0;
    });
    if (number && digits.size() < 3) {
      return SliceMetric{{{}, Quantity::kPercentile, 0, std::stod(digits)}};
    }
  }
  return std::nullopt;
}

// The job that a case's words name: they contain one of the job's words.
SharingClient slice_client(std::string_view words, double solo_ms) {
  SharingClient out{WorkloadRole::kInference, std::string(words)};
  if (words.find("training") != std::string_view::npos) out.role = WorkloadRole::kTraining;
  out.solo_ms = solo_ms;
  return out;
}

Result<void> read_slices(Row& out, const Cells& cells) {
  const std::string words = case_of(cells);
  const std::string name = cells.text("metric");
  auto metric = slice_metric(name);
  if (!metric) {
    return cells.table.fault(cells.row, "metric",
                             "samples_per_s, mean_s, mean_ms, median_iteration_ms or pN_ms");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const double alone, cells.number("alone"));
  BUBBLESIM_ASSIGN_OR_RETURN(const double shared, cells.number("shared"));
  BUBBLESIM_ASSIGN_OR_RETURN(const std::uint32_t clients, cells.count("clients", kMostClients));
  metric->figure.metric = name;
  metric->figure.measured = metric->rate ? shared / alone : shared * metric->ms;
  const double solo = metric->rate ? metric->ms / alone : alone * metric->ms;
  out.subject = cells.text("gpu") + ", " + words + ", " + std::to_string(clients);
  out.system = "time_slicing";
  const auto device = cells.setting.devices.find(cells.text("gpu"));
  if (device != cells.setting.devices.end()) {
    out.device = device->second;
  } else {
    out.note = "no device file stands for " + cells.text("gpu");
  }
  out.clients.assign(clients, slice_client(words, solo));
  if (const auto rate = rate_in(words)) {
    out.clients.front().pace = Pace::kEven;
    out.clients.front().per_s = *rate;
  }
  out.figures = {metric->figure};
  return {};
}

// ---- processes of one model under MPS in a MIG instance

constexpr std::array<std::string_view, 6> kEqualColumns = {
    "model",     "mig_compute_slices",        "batch",
    "processes", "samples_per_s_per_process", "sum_relative_to_one"};

// A pass of one process alone, in the same instance.
Result<double> equal_solo_ms(const Cells& cells) {
  for (std::size_t i = 0; i < cells.table.rows(); ++i) {
    const auto same = [&](std::string_view column) {
      return cells.table.text(i, column) == cells.table.text(cells.row, column);
    };
    if (!same("model") || !same("mig_compute_slices") || !same("batch")) continue;
    if (cells.table.text(i, "processes") != "1") continue;
    const Cells solo{cells.table, i, cells.setting};
    BUBBLESIM_ASSIGN_OR_RETURN(const double rate, solo.number("samples_per_s_per_process"));
    BUBBLESIM_ASSIGN_OR_RETURN(const double batch, solo.number("batch"));
    return 1e3 * batch / rate;
  }
  // Not measured alone with this batch: what the sum says of it.
  BUBBLESIM_ASSIGN_OR_RETURN(const double rate, cells.number("samples_per_s_per_process"));
  BUBBLESIM_ASSIGN_OR_RETURN(const double sum, cells.number("sum_relative_to_one"));
  BUBBLESIM_ASSIGN_OR_RETURN(const double batch, cells.number("batch"));
  BUBBLESIM_ASSIGN_OR_RETURN(const double processes, cells.number("processes"));
  return 1e3 * batch * sum / (rate * processes);
}

Result<void> read_equal(Row& out, const Cells& cells) {
  SharingClient client{WorkloadRole::kInference, cells.text("model")};
  BUBBLESIM_ASSIGN_OR_RETURN(client.batch, cells.count("batch", kMostBatch));
  BUBBLESIM_ASSIGN_OR_RETURN(client.solo_ms, equal_solo_ms(cells));
  BUBBLESIM_ASSIGN_OR_RETURN(out.instance, cells.count("mig_compute_slices", kMostSlices));
  BUBBLESIM_ASSIGN_OR_RETURN(const std::uint32_t clients, cells.count("processes", kMostClients));
  out.subject = client.workload + " batch " + cells.text("batch") + ", " +
                std::to_string(out.instance) + "g, " + std::to_string(clients);
  out.system = "mps";
  if (clients == 1) return add_alone(out, client);
  out.clients.assign(clients, client);
  return add_figure(out, cells, "sum_relative_to_one", {{}, Quantity::kSum});
}

// ---- one job in MIG instances of several sizes

constexpr std::array<std::string_view, 5> kMigColumns = {
    "job", "batch", "mig_compute_slices", "median_iteration_ms", "relative_to_7"};

Result<void> read_mig(Row& out, const Cells& cells) {
  SharingClient client{WorkloadRole::kTraining, cells.text("job")};
  BUBBLESIM_ASSIGN_OR_RETURN(client.batch, cells.count("batch", kMostBatch));
  BUBBLESIM_ASSIGN_OR_RETURN(const double time, cells.number("median_iteration_ms"));
  BUBBLESIM_ASSIGN_OR_RETURN(const double relative, cells.number("relative_to_7"));
  client.solo_ms = time / relative;
  BUBBLESIM_ASSIGN_OR_RETURN(out.partition, cells.count("mig_compute_slices", kMostSlices));
  out.subject = client.workload + " batch " + cells.text("batch") + ", " +
                std::to_string(out.partition) + "g";
  out.system = "mig";
  if (out.partition == kMostSlices) return add_alone(out, client);
  out.clients = {client};
  return add_figure(out, cells, "relative_to_7", {{}, Quantity::kTime});
}

// ---- one job under an MPS percentage

constexpr std::array<std::string_view, 3> kCapColumns = {"work", "sm_percentage",
                                                         "time_relative_to_all_sms"};

Result<void> read_cap(Row& out, const Cells& cells) {
  BUBBLESIM_ASSIGN_OR_RETURN(out.sm_percentage, cells.count("sm_percentage", 100));
  const std::string work = cells.text("work");
  out.subject = work + ", " + std::to_string(out.sm_percentage) + " %";
  out.system = "sm_cap";
  out.clients = {{WorkloadRole::kInference, work}};
  return add_figure(out, cells, "time_relative_to_all_sms", {{}, Quantity::kTime});
}

// ---- which is which

struct Form {
  std::string_view table;  ///< the shipped table of this form
  std::span<const std::string_view> columns;
  Result<void> (*read)(Row&, const Cells&);
};

constexpr std::array<Form, 6> kForms{{
    {"colocation_a100", kPairColumns, &read_pair},
    {"cotraining_gv100", kCotrainingColumns, &read_cotraining},
    {"time_slices", kSliceColumns, &read_slices},
    {"equal_mps_clients_a100", kEqualColumns, &read_equal},
    {"mig_training_a100", kMigColumns, &read_mig},
    {"sm_caps_a100", kCapColumns, &read_cap},
}};

// That of which the table has most columns, for its faults' sake; none if it has none of any.
const Form* form_of(const CsvTable& table) {
  const Form* best = nullptr;
  double most = 0;
  for (const Form& form : kForms) {
    const auto has = std::count_if(form.columns.begin(), form.columns.end(),
                                   [&](std::string_view column) { return table.has(column); });
    const double share = static_cast<double>(has) / static_cast<double>(form.columns.size());
    if (share > most) {
      most = share;
      best = &form;
    }
  }
  return best;
}

tl::unexpected<Error> no_form(const CsvTable& table) {
  std::string names;
  for (const Form& form : kForms) {
    names += (names.empty() ? "" : ", ") + std::string(form.table) + ".csv";
  }
  return fail(table.file(), "line 1", "columns of no table of sharing; expected those of " + names);
}

Result<Row> read_row(const Form& form, const Cells& cells) {
  Row out;
  out.table = sharing_table_name(cells.table);
  BUBBLESIM_ASSIGN_OR_RETURN(out.role, role_of(cells.table, cells.row));
  out.system = cells.text("system");
  BUBBLESIM_RETURN_IF_ERROR(form.read(out, cells));
  return out;
}

SystemSetting read_system(ObjectReader& object) {
  SystemSetting out;
  out.name = object.text("name");
  out.policy = object.text("policy");
  out.case_name = object.text("case", "");
  ObjectReader parameters = object.child("parameters", Presence::kOptional);
  if (!parameters.present()) return out;
  for (const std::string& key : parameters.keys()) {
    std::string text = parameters.raw(key);
    if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
    out.parameters.emplace_back(key, std::move(text));
  }
  return out;
}

std::vector<MeasuredSpan> read_spans(ObjectReader& arrivals) {
  std::vector<MeasuredSpan> out;
  if (!arrivals.has("measured")) return out;
  for (ObjectReader& entry : arrivals.children("measured")) {
    const std::string name = entry.text("case");
    const Duration from = entry.duration("from", {});
    const Duration until = entry.duration("until", {from + Duration{1}});
    out.push_back({name, from, until});
  }
  return out;
}

SharingSetting read_setting(ObjectReader& root) {
  SharingSetting out;
  (void)root.text("note", "");
  out.device = root.text("device");
  ObjectReader devices = root.child("devices", Presence::kOptional);
  if (devices.present()) {
    for (const std::string& key : devices.keys()) out.devices[key] = devices.text(key);
  }
  ObjectReader arrivals = root.child("arrivals");
  (void)arrivals.text("source", "");
  out.load = arrivals.number("load", {0.01, 1}, out.load);
  out.burst = arrivals.duration("burst", {}, Duration{});
  out.seed = arrivals.integer<std::uint64_t>("seed", {0, 1ULL << 53U}, 1);
  out.least_length = arrivals.duration("least_length", {Duration{1000000}});
  out.requests = arrivals.integer<std::uint32_t>("requests", {1, 1u << 24U});
  out.starts = arrivals.integer<std::uint32_t>("starts", {1, 1000}, out.starts);
  out.latencies_from = arrivals.number("latencies_from", {0, 0.9}, 0.0);
  out.spans = read_spans(arrivals);
  out.epoch = arrivals.integer<std::uint32_t>("epoch", {1, 1u << 24U}, 0U);
  out.epoch_pause = arrivals.duration("epoch_pause", {}, Duration{});
  out.step_pause = arrivals.duration("step_pause", {}, Duration{});
  for (ObjectReader& entry : root.children("systems")) out.systems.push_back(read_system(entry));
  root.finish();
  return out;
}

}  // namespace

const SharingFigure* SharingRow::figure(std::string_view metric) const {
  for (const SharingFigure& figure : figures) {
    if (figure.metric == metric) return &figure;
  }
  return nullptr;
}

std::string sharing_table_name(const CsvTable& table) {
  return std::filesystem::path(table.file()).stem().string();
}

Result<std::string> setting_of_form(const CsvTable& table) {
  const Form* form = form_of(table);
  if (form == nullptr) return no_form(table);
  return std::string(form->table);
}

CheckedResult<std::vector<SharingRow>> read_sharing_rows(const CsvTable& table,
                                                         const SharingSetting& setting) {
  const Form* form = form_of(table);
  if (form == nullptr) return tl::make_unexpected(Errors{no_form(table).value()});
  BUBBLESIM_RETURN_IF_ERROR(table.expect(form->columns));
  std::vector<SharingRow> out;
  Errors errors;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    out.push_back(take<SharingRow>(read_row(*form, {table, i, setting}), errors));
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return out;
}

std::vector<std::string> sharing_tables() {
  std::vector<std::string> out;
  for (const Form& form : kForms) out.emplace_back(form.table);
  return out;
}

CheckedResult<SharingSetting> find_sharing_setting(const std::string& name,
                                                   const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path,
                             find_data_file(name, configs + "/validation", "setting"));
  BUBBLESIM_ASSIGN_OR_RETURN(SharingSetting out, read_whole_file(path, read_setting));
  out.path = path;
  return out;
}

}  // namespace bubblesim::validate
