#include "sim/validate/sharing_table.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "sim/base/data_file.hpp"
#include "sim/validate/job_name.hpp"
#include "sim/validate/sharing_case.hpp"
#include "sim/validate/table_cells.hpp"

namespace bubblesim::validate {
namespace {

using Row = SharingRow;

void state(Row& out, std::string because) { keep_reason(out.note, std::move(because)); }

// A cell of a table of which the row is made.
struct TableRow {
  const CsvTable& table;
  std::size_t row;
  const SharingSetting& setting;

  [[nodiscard]] std::string text(std::string_view column) const {
    return std::string(table.text(row, column));
  }
  // As measured_figure() says.
  [[nodiscard]] Result<std::optional<double>> figure(std::string_view column) const {
    return measured_figure(table, row, column);
  }
  // A figure without which the row is stated; then 1.
  [[nodiscard]] Result<double> needed(Row& out, std::string_view column) const {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::optional<double> value, figure(column));
    if (!value) state(out, "nothing is measured in " + std::string(column) + " (blank or 0)");
    return value.value_or(1);
  }
  // As stated_count() says.
  [[nodiscard]] Result<std::uint32_t> count(Row& out, std::string_view column,
                                            std::uint32_t most) const {
    return stated_count(table, row, column, most, out.note);
  }
  // A count as its row is called by it: the number that was read, else the cell as it is.
  [[nodiscard]] std::string shown(std::string_view column, std::uint32_t count) const {
    const bool is_read = table.figure(row, column) == static_cast<double>(count);
    return is_read ? std::to_string(count) : text(column);
  }
  // Whether another row has the same number in a column, or else the same name.
  [[nodiscard]] bool same(std::size_t other, std::string_view column) const {
    const auto own = table.figure(row, column);
    if (own) return table.figure(other, column) == own;
    return job_letters(table.text(other, column)) == job_letters(text(column));
  }
};

constexpr std::array<std::string_view, 1> kLoadColumns{"load"};

// A part of a row's subject; empty if nothing is shown.
std::string part(std::string_view before, const std::string& shown, std::string_view after = {}) {
  return shown.empty() ? shown : std::string(before) + shown + std::string(after);
}

constexpr std::uint32_t kMostBatch = 1U << 16U;
constexpr std::uint32_t kMostClients = 64;
constexpr double kLeastLoad = 0.01;
constexpr std::string_view kAloneRow = "alone";
constexpr std::uint32_t kMostSlices = 7;

Result<void> add_figure(Row& out, const TableRow& cells, std::string_view column,
                        SharingFigure figure) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::optional<double> measured, cells.figure(column));
  if (!measured) {
    out.left_out.emplace_back(column);
    return {};
  }
  figure.measured = *measured;
  figure.metric = column;
  out.figures.push_back(std::move(figure));
  return {};
}

// A client alone, as its workload says: not scaled to what it is judged by.
Result<void> add_alone(Row& out, SharingClient client) {
  out.system = kAloneRow;
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

// Of the row, else of the setting.
Result<double> load_of(Row& out, const TableRow& cells) {
  const std::string column = optional_column(cells.table, kLoadColumns);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto load, cells.table.number(cells.row, column));
  if (!load) return cells.setting.load;
  out.subject += ", load " + cells.text(column);
  if (*load < kLeastLoad || *load > 1) {
    state(out, "load: found \"" + cells.text(column) + "\"; expected 0.01 to 1");
  }
  return *load;
}

Result<void> read_pair(Row& out, const TableRow& cells) {
  const std::array<SharingFigure, 6> kinds = {{{{}, Quantity::kShare, 0},
                                               {{}, Quantity::kShare, 1},
                                               {{}, Quantity::kMean, 0},
                                               {{}, Quantity::kPercentile, 0, 90},
                                               {{}, Quantity::kPercentile, 0, 95},
                                               {{}, Quantity::kPercentile, 0, 99}}};
  SharingClient service{WorkloadRole::kInference, cells.text("inference")};
  BUBBLESIM_ASSIGN_OR_RETURN(service.solo_ms, cells.needed(out, "solo_avg_ms"));
  out.subject = service.workload + " beside " + cells.text("training");
  BUBBLESIM_ASSIGN_OR_RETURN(const double load, load_of(out, cells));
  service.pace = Pace::kEven;
  service.per_s = 1e3 * load / service.solo_ms;
  out.clients = {service, {WorkloadRole::kTraining, cells.text("training")}};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    BUBBLESIM_RETURN_IF_ERROR(add_figure(out, cells, kPairColumns[i], kinds[i]));
  }
  return {};
}

// ---- two programs, each with rows of its own, and rows of each alone

constexpr std::array<std::string_view, 9> kCotrainingColumns = {
    "case", "job", "system", "per_s", "relative_to_alone", "mean_ms", "p50_ms", "p95_ms", "p99_ms"};

// The row of the same case, device and job alone.
std::optional<std::size_t> alone_row(const TableRow& cells, std::string_view job) {
  const std::string device = optional_column(cells.table, kDeviceColumns);
  for (std::size_t i = 0; i < cells.table.rows(); ++i) {
    if (cells.same(i, "case") && cells.same(i, device) &&
        letters_of(cells.table.text(i, "job")) == job &&
        letters_of(cells.table.text(i, "system")) == kAloneRow) {
      return i;
    }
  }
  return std::nullopt;
}

Result<SharingClient> cotraining_client(Row& row, const TableRow& cells, std::string_view job) {
  const auto alone = alone_row(cells, job);
  SharingClient out{WorkloadRole::kTraining, cells.text("case") + " " + std::string(job)};
  if (!alone) {
    state(row, "the table has no row of " + out.workload + " alone");
    return out;
  }
  const TableRow solo{cells.table, *alone, cells.setting};
  BUBBLESIM_ASSIGN_OR_RETURN(out.solo_ms, solo.needed(row, "mean_ms"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.per_s, solo.needed(row, "per_s"));
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

Result<void> read_cotraining(Row& out, const TableRow& cells) {
  const std::array<std::string_view, 2> jobs = {"production", "opportunistic"};
  const std::string job = letters_of(cells.text("job"));
  const auto at = static_cast<std::size_t>(std::find(jobs.begin(), jobs.end(), job) - jobs.begin());
  if (at == jobs.size()) {
    return cells.table.fault(cells.row, "job", "production or opportunistic");
  }
  out.subject = cells.text("case") + ", " + job;
  for (const std::string_view name : jobs) {
    BUBBLESIM_ASSIGN_OR_RETURN(SharingClient client, cotraining_client(out, cells, name));
    out.clients.push_back(std::move(client));
  }
  if (out.system == kAloneRow) return add_alone(out, out.clients[at]);
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
std::string case_of(const TableRow& cells) {
  for (std::size_t i = cells.row + 1; i-- > 0;) {
    const std::string_view text = cells.table.text(i, "case");
    if (letters_of(text) != "thesame") return std::string(text);
  }
  return {};
}

// The job that a case's words name: they contain one of the job's words.
SharingClient slice_client(std::string_view words, double solo_ms) {
  SharingClient out{WorkloadRole::kInference, std::string(words)};
  if (words.find("training") != std::string_view::npos) out.role = WorkloadRole::kTraining;
  out.solo_ms = solo_ms;
  return out;
}

constexpr std::string_view kSliceMetrics =
    "samples_per_s, mean_ms, median_iteration_ms or pN_ms (_s: in seconds)";

Result<void> read_slices(Row& out, const TableRow& cells) {
  const std::string words = case_of(cells);
  const std::string name = cells.text("metric");
  BUBBLESIM_ASSIGN_OR_RETURN(const std::uint32_t clients,
                             cells.count(out, "clients", kMostClients));
  out.subject = cells.text("gpu") + ", " + words + part(", ", cells.shown("clients", clients));
  out.system = "time_slicing";
  if (cells.text("gpu").empty()) state(out, "the row names no gpu");
  auto metric = slice_metric(name);
  if (!metric) {
    state(out, "metric: found \"" + name + "\"; expected " + std::string(kSliceMetrics));
    return {};
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const double alone, cells.needed(out, "alone"));
  BUBBLESIM_ASSIGN_OR_RETURN(const double shared, cells.needed(out, "shared"));
  metric->figure.metric = name;
  metric->figure.measured = metric->rate ? shared / alone : shared * metric->ms;
  out.figures = {metric->figure};
  const auto batches = batches_in(words);
  if (batches.size() > 1) state(out, "its case names two batch sizes; expected one job");
  const double samples = batches.empty() ? 1 : batches.front();  // of a pass
  const double solo = metric->rate ? metric->ms * samples / alone : alone * metric->ms;
  out.clients.assign(clients, slice_client(words, solo));
  const auto rate = rate_in(words);
  if (!rate) {
    state(out, rate.error().message);
  } else if (*rate) {
    out.clients.front().pace = Pace::kEven;
    out.clients.front().per_s = **rate;
  }
  return {};
}

// ---- processes of one model under MPS in a MIG instance

constexpr std::array<std::string_view, 6> kEqualColumns = {
    "model",     "mig_compute_slices",        "batch",
    "processes", "samples_per_s_per_process", "sum_relative_to_one"};

// A pass of one process alone, in the same instance.
Result<double> equal_solo_ms(Row& out, const TableRow& cells, double batch, double processes) {
  const std::string device = optional_column(cells.table, kDeviceColumns);
  for (std::size_t i = 0; i < cells.table.rows(); ++i) {
    if (cells.table.figure(i, "processes") != 1.0 || !cells.same(i, "batch")) continue;
    if (!cells.same(i, "mig_compute_slices") || !cells.same(i, "model")) continue;
    if (!cells.same(i, device)) continue;
    const TableRow solo{cells.table, i, cells.setting};
    BUBBLESIM_ASSIGN_OR_RETURN(const auto rate, solo.figure("samples_per_s_per_process"));
    if (rate) return 1e3 * batch / *rate;
  }
  // Not measured alone with this batch: what the sum says of it.
  BUBBLESIM_ASSIGN_OR_RETURN(const double rate, cells.needed(out, "samples_per_s_per_process"));
  BUBBLESIM_ASSIGN_OR_RETURN(const double sum, cells.needed(out, "sum_relative_to_one"));
  return 1e3 * batch * sum / (rate * processes);
}

Result<void> read_equal(Row& out, const TableRow& cells) {
  SharingClient client{WorkloadRole::kInference, cells.text("model")};
  BUBBLESIM_ASSIGN_OR_RETURN(client.batch, cells.count(out, "batch", kMostBatch));
  BUBBLESIM_ASSIGN_OR_RETURN(out.instance, cells.count(out, "mig_compute_slices", kMostSlices));
  BUBBLESIM_ASSIGN_OR_RETURN(const std::uint32_t clients,
                             cells.count(out, "processes", kMostClients));
  BUBBLESIM_ASSIGN_OR_RETURN(client.solo_ms, equal_solo_ms(out, cells, client.batch, clients));
  out.subject = client.workload + part(" batch ", cells.shown("batch", client.batch)) +
                part(", ", cells.shown("mig_compute_slices", out.instance), "g") +
                part(", ", cells.shown("processes", clients));
  out.system = "mps";
  if (cells.table.figure(cells.row, "processes") == 1.0) return add_alone(out, client);
  out.clients.assign(clients, client);
  return add_figure(out, cells, "sum_relative_to_one", {{}, Quantity::kSum});
}

// ---- one job in MIG instances of several sizes

constexpr std::array<std::string_view, 5> kMigColumns = {
    "job", "batch", "mig_compute_slices", "median_iteration_ms", "relative_to_7"};

Result<void> read_mig(Row& out, const TableRow& cells) {
  SharingClient client{WorkloadRole::kTraining, cells.text("job")};
  BUBBLESIM_ASSIGN_OR_RETURN(client.batch, cells.count(out, "batch", kMostBatch));
  BUBBLESIM_ASSIGN_OR_RETURN(const double time, cells.needed(out, "median_iteration_ms"));
  BUBBLESIM_ASSIGN_OR_RETURN(const double relative, cells.needed(out, "relative_to_7"));
  client.solo_ms = time / relative;
  BUBBLESIM_ASSIGN_OR_RETURN(out.partition, cells.count(out, "mig_compute_slices", kMostSlices));
  out.subject = client.workload + part(" batch ", cells.shown("batch", client.batch)) +
                part(", ", cells.shown("mig_compute_slices", out.partition), "g");
  out.system = "mig";
  if (out.partition == kMostSlices) return add_alone(out, client);
  out.clients = {client};
  return add_figure(out, cells, "relative_to_7", {{}, Quantity::kTime});
}

// ---- one job under an MPS percentage

constexpr std::array<std::string_view, 3> kCapColumns = {"work", "sm_percentage",
                                                         "time_relative_to_all_sms"};

Result<void> read_cap(Row& out, const TableRow& cells) {
  BUBBLESIM_ASSIGN_OR_RETURN(out.sm_percentage, cells.count(out, "sm_percentage", 100));
  const std::string work = cells.text("work");
  out.subject = work + part(", ", cells.shown("sm_percentage", out.sm_percentage), " %");
  out.system = "sm_cap";
  out.clients = {{WorkloadRole::kInference, work}};
  return add_figure(out, cells, "time_relative_to_all_sms", {{}, Quantity::kTime});
}

// ---- which is which

struct Form {
  std::string_view table;  ///< the shipped table of this form
  std::span<const std::string_view> columns;
  Result<void> (*read)(Row&, const TableRow&);
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

// As the setting calls it.
std::string system_of(const TableRow& cells) {
  const std::string letters = letters_of(cells.text("system"));
  if (letters == kAloneRow) return std::string(kAloneRow);
  for (const SystemSetting& system : cells.setting.systems) {
    if (letters_of(system.name) == letters) return system.name;
  }
  return cells.text("system");
}

Result<Row> read_row(const Form& form, const TableRow& cells) {
  Row out;
  out.table = sharing_table_name(cells.table);
  BUBBLESIM_ASSIGN_OR_RETURN(out.role, role_of(cells.table, cells.row));
  out.system = system_of(cells);
  out.device = measured_device(cells.table, cells.row, cells.setting.devices, out.note);
  BUBBLESIM_RETURN_IF_ERROR(form.read(out, cells));
  const std::string device = cells.text(optional_column(cells.table, kDeviceColumns));
  if (!device.empty() && form.read != &read_slices) out.subject += " on " + device;
  if (out.figures.empty()) state(out, "nothing is measured in it");
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
    out.parameters.emplace_back(key, parameters.scalar(key));
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
  out.load = arrivals.number("load", {kLeastLoad, 1}, out.load);
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

std::vector<std::string> unread_columns(const CsvTable& table) {
  const Form* form = form_of(table);
  if (form == nullptr) return table.columns();
  std::vector<std::string_view> read(form->columns.begin(), form->columns.end());
  const std::string device = optional_column(table, kDeviceColumns);
  const std::string load = optional_column(table, kLoadColumns);
  read.insert(read.end(), {"role", device});
  if (form->read == &read_pair) read.push_back(load);
  return columns_besides(table, read);
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
  BUBBLESIM_RETURN_IF_ERROR(add_device_files(out.devices, configs));
  return out;
}

}  // namespace bubblesim::validate
