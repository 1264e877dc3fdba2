// CSV: one table of columns, each a name and how its cell is made.
#include <algorithm>
#include <array>
#include <vector>

#include "sim/observe/csv_numbers.hpp"
#include "sim/observe/report.hpp"
#include "sim/observe/result_rows.hpp"
#include "sim/observe/summary.hpp"
#include "sim/text/csv_text.hpp"

namespace bubblesim::observe {
namespace {

/// What a line is about. `filler` is null for a policy without fillers.
struct CsvRow {
  const RunReport& report;
  const PolicyResult& policy;
  std::optional<std::size_t> filler_index;
  const FillerResult* filler;
  std::optional<LatencySummary> latency;
  std::optional<LatencySummary> ttft;  ///< of a language-model server, as `tpot`
  std::optional<LatencySummary> tpot;
};

CsvRow row_of(const RunReport& report, const PolicyResult& policy, std::size_t index) {
  const FillerResult& filler = policy.fillers[index];
  CsvRow row{report, policy, index, &filler, filler.latency.summary(), {}, {}};
  if (!filler.server) return row;
  row.ttft = filler.server->ttft.summary();
  row.tpot = filler.server->tpot.summary();
  return row;
}

std::vector<CsvRow> rows_of(const RunReport& report, const PolicyResult& policy) {
  if (policy.fillers.empty()) return {{report, policy, std::nullopt, nullptr, {}, {}, {}}};
  std::vector<CsvRow> rows;
  for (std::size_t i = 0; i < policy.fillers.size(); ++i) {
    rows.push_back(row_of(report, policy, i));
  }
  return rows;
}

struct CsvColumn {
  std::string_view name;
  CellType type;
  std::string (*cell)(const CsvRow&);
};

std::string latency_cell(const std::optional<LatencySummary>& latency,
                         LatencyValue LatencySummary::*value) {
  return latency ? milliseconds(((*latency).*value).value) : std::string();
}

/// The first percentile that is only a lower bound.
std::string lower_bound_from(const std::optional<LatencySummary>& latency) {
  if (!latency) return {};
  if (latency->p50.bound == Bound::kLower) return "p50";
  if (latency->p90.bound == Bound::kLower) return "p90";
  if (latency->p95.bound == Bound::kLower) return "p95";
  if (latency->p99.bound == Bound::kLower) return "p99";
  return latency->max.bound == Bound::kLower ? "max" : "";
}

std::string joined(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string text;
  for (const auto& [name, value] : pairs) {
    if (!text.empty()) text += ';';
    text += name + '=' + value;
  }
  return text;
}

std::string counts(const CsvRow& row) {
  CounterSet all = row.report.counters;
  all.merge(row.policy.counters);
  std::string text;
  for (const auto& [name, entry] : all) {
    if (!text.empty()) text += ';';
    text += name + '=' + std::to_string(entry.count);
  }
  return text;
}

/// Names of the counters that speak against what the row says.
std::string losses_of(const CsvRow& row) {
  std::string text;
  for (const auto& [name, entry] : concerning(row.report, row.policy, row.filler_index)) {
    if (entry.severity < Severity::kLoss) continue;
    if (!text.empty()) text += ';';
    text += name;
  }
  return text;
}

std::string memory_high_water(const CsvRow& row) {
  if (row.policy.gpus.empty()) return {};
  Bytes most;
  for (const GpuUse& gpu : row.policy.gpus) most = std::max(most, gpu.memory_high_water);
  return most == Bytes{} ? std::string() : std::to_string(most.value);
}

/// A cell that is empty where there is no filler.
template <auto Make>
std::string of_filler(const CsvRow& row) {
  return row.filler ? Make(*row.filler) : std::string();
}

template <auto Count>
std::string filler_count(const CsvRow& row) {
  return row.filler ? std::to_string((*row.filler).*Count) : std::string();
}

/// A cell that is empty but for fillers with fill jobs.
template <auto Count>
std::string jobs_count(const CsvRow& row) {
  const bool there = row.filler && row.filler->jobs;
  return there ? std::to_string((*row.filler->jobs).*Count) : std::string();
}

template <auto Span>
std::string jobs_seconds(const CsvRow& row) {
  const bool there = row.filler && row.filler->jobs && (*row.filler->jobs).*Span;
  return there ? seconds(*((*row.filler->jobs).*Span)) : std::string();
}

template <auto Fraction>
std::string gpu_mean(const CsvRow& row) {
  if (row.policy.gpus.empty()) return {};
  return number(mean_over_gpus(row.policy.gpus, Fraction));
}

template <auto Value>
std::string power_cell(const CsvRow& row) {
  const auto power = power_of(row.policy);
  return power ? number((*power).*Value) : std::string();
}

template <auto Value>
std::string power_limit_cell(const CsvRow& row) {
  const auto& cost = row.report.baseline.power_limit;
  return cost ? number((*cost).*Value) : std::string();
}

template <auto Value>
std::string latency_cell(const CsvRow& row) {
  return latency_cell(row.latency, Value);
}

template <auto Value>
std::string ttft_cell(const CsvRow& row) {
  return latency_cell(row.ttft, Value);
}

template <auto Value>
std::string tpot_cell(const CsvRow& row) {
  return latency_cell(row.tpot, Value);
}

template <int kPercent>
std::string tbt_cell(const CsvRow& row) {
  if (!row.filler || !row.filler->server) return {};
  const auto value = row.filler->server->tbt.percentile(kPercent);
  return value ? milliseconds(value->value) : std::string();
}

/// A cell that is empty but for language-model servers.
template <auto Make>
std::string of_server(const CsvRow& row) {
  return row.filler && row.filler->server ? Make(*row.filler->server) : std::string();
}

template <auto Count>
std::string server_count(const CsvRow& row) {
  return row.filler && row.filler->server ? std::to_string((*row.filler->server).*Count)
                                          : std::string();
}

const CsvColumn kCsvColumns[] = {
    {"config", CellType::kText, [](const CsvRow& r) { return r.report.config; }},
    {"seed", CellType::kInteger, [](const CsvRow& r) { return std::to_string(r.report.seed); }},
    {"device", CellType::kText, [](const CsvRow& r) { return r.report.device; }},
    {"ranks", CellType::kInteger, [](const CsvRow& r) { return std::to_string(r.report.ranks); }},
    {"measured", CellType::kText,
     [](const CsvRow& r) { return r.report.measured ? r.report.measured->place : std::string(); }},
    {"policy", CellType::kText, [](const CsvRow& r) { return r.policy.policy; }},
    {"policy_parameters", CellType::kText,
     [](const CsvRow& r) { return joined(r.policy.parameters); }},
    {"oracle", CellType::kInteger,
     [](const CsvRow& r) { return std::string(r.policy.oracle ? "1" : "0"); }},
    {"simulated_s", CellType::kNumber, [](const CsvRow& r) { return seconds(r.policy.simulated); }},
    {"warmup_s", CellType::kNumber, [](const CsvRow& r) { return seconds(r.policy.warmup); }},
    {"training_iterations", CellType::kInteger,
     [](const CsvRow& r) { return std::to_string(r.policy.training.iterations); }},
    {"training_iteration_mean_ms", CellType::kNumber,
     [](const CsvRow& r) { return milliseconds(r.policy.training.mean_iteration); }},
    {"training_iteration_min_ms", CellType::kNumber,
     [](const CsvRow& r) { return milliseconds(r.policy.training.min_iteration); }},
    {"training_iteration_max_ms", CellType::kNumber,
     [](const CsvRow& r) { return milliseconds(r.policy.training.max_iteration); }},
    {"training_iterations_per_s", CellType::kNumber,
     [](const CsvRow& r) { return number(r.policy.training.iterations_per_s); }},
    {"training_samples_per_s", CellType::kNumber,
     [](const CsvRow& r) { return number(r.policy.training.samples_per_s); }},
    {"training_normalised_fraction", CellType::kNumber,
     [](const CsvRow& r) { return number(r.policy.training.normalised_to_alone); }},
    {"training_redone_iterations", CellType::kInteger,
     [](const CsvRow& r) {
       const auto& redone = r.policy.training.redone;
       return redone ? std::to_string(*redone) : std::string();
     }},
    {"training_goodput_per_s", CellType::kNumber,
     [](const CsvRow& r) { return number(r.policy.training.goodput_per_s); }},
    {"filler", CellType::kText, of_filler<[](const FillerResult& f) { return f.name; }>},
    {"filler_mode", CellType::kText,
     of_filler<[](const FillerResult& f) { return std::string(filler_mode_name(f.mode)); }>},
    {"filler_gpus", CellType::kInteger,
     of_filler<[](const FillerResult& f) { return std::to_string(f.instances.size()); }>},
    {"filler_gpus_admitted", CellType::kInteger,
     of_filler<[](const FillerResult& f) { return std::to_string(f.admitted_gpus()); }>},
    {"filler_passes", CellType::kInteger, filler_count<&FillerResult::passes>},
    {"requests_before", CellType::kInteger, filler_count<&FillerResult::requests_before>},
    {"requests_arrived", CellType::kInteger, filler_count<&FillerResult::requests_arrived>},
    {"requests_completed", CellType::kInteger, filler_count<&FillerResult::requests_completed>},
    {"requests_unfinished", CellType::kInteger, filler_count<&FillerResult::requests_unfinished>},
    {"requests_refused", CellType::kInteger, filler_count<&FillerResult::requests_refused>},
    {"requests_within_deadline", CellType::kInteger, of_filler<[](const FillerResult& f) {
       return f.requests_within_deadline ? std::to_string(*f.requests_within_deadline)
                                         : std::string();
     }>},
    {"filler_offered_per_s", CellType::kNumber,
     of_filler<[](const FillerResult& f) { return number(f.offered_per_s); }>},
    {"filler_requests_per_s", CellType::kNumber,
     of_filler<[](const FillerResult& f) { return number(f.requests_per_s); }>},
    {"filler_normalised_fraction", CellType::kNumber,
     of_filler<[](const FillerResult& f) { return number(f.normalised_to_own_gpu); }>},
    {"latency_p50_ms", CellType::kNumber, latency_cell<&LatencySummary::p50>},
    {"latency_p90_ms", CellType::kNumber, latency_cell<&LatencySummary::p90>},
    {"latency_p95_ms", CellType::kNumber, latency_cell<&LatencySummary::p95>},
    {"latency_p99_ms", CellType::kNumber, latency_cell<&LatencySummary::p99>},
    {"latency_max_ms", CellType::kNumber, latency_cell<&LatencySummary::max>},
    {"latency_mean_ms", CellType::kNumber, latency_cell<&LatencySummary::mean>},
    {"latency_lower_bound_from", CellType::kText,
     [](const CsvRow& r) { return lower_bound_from(r.latency); }},
    {"overloaded", CellType::kInteger, of_filler<[](const FillerResult& f) {
       return f.mode == FillerMode::kOnline ? std::string(f.overloaded ? "1" : "0") : std::string();
     }>},
    {"ttft_mean_ms", CellType::kNumber, ttft_cell<&LatencySummary::mean>},
    {"ttft_p50_ms", CellType::kNumber, ttft_cell<&LatencySummary::p50>},
    {"ttft_p90_ms", CellType::kNumber, ttft_cell<&LatencySummary::p90>},
    {"ttft_p95_ms", CellType::kNumber, ttft_cell<&LatencySummary::p95>},
    {"ttft_p99_ms", CellType::kNumber, ttft_cell<&LatencySummary::p99>},
    {"ttft_lower_bound_from", CellType::kText,
     [](const CsvRow& r) { return lower_bound_from(r.ttft); }},
    {"tpot_mean_ms", CellType::kNumber, tpot_cell<&LatencySummary::mean>},
    {"tpot_p50_ms", CellType::kNumber, tpot_cell<&LatencySummary::p50>},
    {"tpot_p90_ms", CellType::kNumber, tpot_cell<&LatencySummary::p90>},
    {"tpot_p95_ms", CellType::kNumber, tpot_cell<&LatencySummary::p95>},
    {"tpot_p99_ms", CellType::kNumber, tpot_cell<&LatencySummary::p99>},
    {"tbt_p50_ms", CellType::kNumber, tbt_cell<50>},
    {"tbt_p95_ms", CellType::kNumber, tbt_cell<95>},
    {"tbt_p99_ms", CellType::kNumber, tbt_cell<99>},
    {"tbt_max_ms", CellType::kNumber, tbt_cell<100>},
    {"output_tokens_per_s", CellType::kNumber,
     of_server<[](const ServerResult& s) { return number(s.output_tokens_per_s); }>},
    {"goodput_per_s", CellType::kNumber,
     of_server<[](const ServerResult& s) { return number(s.goodput_per_s); }>},
    {"requests_within_limits", CellType::kInteger, of_server<[](const ServerResult& s) {
       return s.within_limits ? std::to_string(*s.within_limits) : std::string();
     }>},
    {"server_preemptions", CellType::kInteger, server_count<&ServerResult::preemptions>},
    {"recomputed_tokens", CellType::kInteger, server_count<&ServerResult::recomputed_tokens>},
    {"prefix_hit_tokens", CellType::kInteger, server_count<&ServerResult::prefix_hit_tokens>},
    {"kv_mean_fraction", CellType::kNumber,
     of_server<[](const ServerResult& s) { return number(s.mean_kv_fraction); }>},
    {"kv_most_fraction", CellType::kNumber,
     of_server<[](const ServerResult& s) { return number(s.most_kv_fraction); }>},
    {"filler_memory_bytes", CellType::kInteger,
     of_filler<[](const FillerResult& f) { return std::to_string(f.memory.value); }>},
    {"filler_instances_unplaced", CellType::kInteger,
     filler_count<&FillerResult::instances_unplaced>},
    {"jobs_submitted", CellType::kInteger, jobs_count<&FillJobs::submitted>},
    {"jobs_finished", CellType::kInteger, jobs_count<&FillJobs::finished>},
    {"jobs_running", CellType::kInteger, jobs_count<&FillJobs::running>},
    {"jobs_waiting", CellType::kInteger, jobs_count<&FillJobs::waiting>},
    {"jobs_makespan_s", CellType::kNumber, jobs_seconds<&FillJobs::makespan>},
    {"jobs_mean_completion_s", CellType::kNumber, jobs_seconds<&FillJobs::mean_completion>},
    {"jobs_deadlines_met", CellType::kInteger, jobs_count<&FillJobs::deadlines_met>},
    {"jobs_deadlines_missed", CellType::kInteger, jobs_count<&FillJobs::deadlines_missed>},
    {"jobs_deadlines_open", CellType::kInteger, jobs_count<&FillJobs::deadlines_open>},
    {"gpu_busy_fraction", CellType::kNumber, gpu_mean<&GpuUse::busy_fraction>},
    {"gpu_busy_without_collectives_fraction", CellType::kNumber,
     gpu_mean<&GpuUse::busy_without_collectives_fraction>},
    {"training_sm_fraction", CellType::kNumber, gpu_mean<&GpuUse::training_sm_fraction>},
    {"filler_sm_fraction", CellType::kNumber, gpu_mean<&GpuUse::filler_sm_fraction>},
    {"bubble_fraction", CellType::kNumber, gpu_mean<&GpuUse::bubble_fraction>},
    {"bubble_recovered_fraction", CellType::kNumber,
     [](const CsvRow& r) {
       return r.policy.gpus.empty() ? std::string() : number(recovered_over_gpus(r.policy.gpus));
     }},
    {"memory_high_water_bytes", CellType::kInteger, memory_high_water},
    {"gpu_power_mean_w", CellType::kNumber, power_cell<&PowerSummary::mean_w>},
    {"gpu_power_peak_w", CellType::kNumber, power_cell<&PowerSummary::peak_w>},
    {"gpu_clock_mean_mhz", CellType::kNumber, power_cell<&PowerSummary::clock_mhz>},
    {"training_iteration_energy_j", CellType::kNumber, power_cell<&PowerSummary::iteration_j>},
    {"filler_request_energy_j", CellType::kNumber,
     of_filler<[](const FillerResult& f) { return number(request_energy(f)); }>},
    {"power_limit_kept_fraction", CellType::kNumber, power_limit_cell<&PowerLimitCost::kept>},
    {"power_limit_alone_w", CellType::kNumber, power_limit_cell<&PowerLimitCost::limited_w>},
    {"power_unlimited_alone_w", CellType::kNumber, power_limit_cell<&PowerLimitCost::unlimited_w>},
    {"policy_calls", CellType::kInteger,
     [](const CsvRow& r) { return std::to_string(r.policy.activity.calls); }},
    {"policy_holds", CellType::kInteger,
     [](const CsvRow& r) { return std::to_string(r.policy.activity.holds); }},
    {"policy_hold_mean_ms", CellType::kNumber,
     [](const CsvRow& r) { return milliseconds(r.policy.activity.mean_hold); }},
    {"events", CellType::kInteger, [](const CsvRow& r) { return std::to_string(r.policy.events); }},
    {"replay_error_fraction", CellType::kNumber,
     [](const CsvRow& r) { return number(r.report.baseline.replay_error); }},
    {"losses", CellType::kText, losses_of},
    {"counters", CellType::kText, counts},
};

/// A cell's text as a value of its column's type: the texts of numbers read back exactly.
Cell typed(const std::string& text, CellType type) {
  if (text.empty()) return {};
  if (type == CellType::kText) return text;
  const char* const end = text.data() + text.size();
  if (type == CellType::kNumber) {
    double value = 0;
    std::from_chars(text.data(), end, value);
    return value;
  }
  std::uint64_t value = 0;
  std::from_chars(text.data(), end, value);
  return static_cast<std::int64_t>(value);
}

ResultRow result_row(const CsvRow& row, std::uint32_t policy, std::uint32_t filler) {
  ResultRow result{policy, filler, {}};
  result.cells.reserve(std::size(kCsvColumns));
  for (const CsvColumn& column : kCsvColumns) {
    result.cells.push_back(typed(column.cell(row), column.type));
  }
  return result;
}

void append_row(std::string& text, const CsvRow& row) {
  bool first = true;
  for (const CsvColumn& column : kCsvColumns) {
    if (!first) text += ',';
    first = false;
    append_csv_cell(text, column.cell(row));
  }
  text += '\n';
}

}  // namespace

std::span<const std::string_view> csv_columns() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const CsvColumn& column : kCsvColumns) all.push_back(column.name);
    return all;
  }();
  return names;
}

std::span<const ResultColumn> result_columns() {
  static const std::vector<ResultColumn> columns = [] {
    std::vector<ResultColumn> all;
    for (const CsvColumn& column : kCsvColumns) all.push_back({column.name, column.type});
    return all;
  }();
  return columns;
}

std::vector<ResultRow> result_rows(const RunReport& report) {
  std::vector<ResultRow> rows;
  for (std::uint32_t p = 0; p < report.policies.size(); ++p) {
    for (const CsvRow& row : rows_of(report, report.policies[p])) {
      const auto filler = static_cast<std::uint32_t>(row.filler_index.value_or(0));
      rows.push_back(result_row(row, p, filler));
    }
  }
  return rows;
}

std::string csv_header() {
  std::string line;
  for (const std::string_view name : csv_columns()) {
    if (!line.empty()) line += ',';
    line += name;
  }
  return line + '\n';
}

std::string csv_rows(const RunReport& report) {
  std::string text;
  for (const PolicyResult& policy : report.policies) {
    for (const CsvRow& row : rows_of(report, policy)) append_row(text, row);
  }
  return text;
}

}  // namespace bubblesim::observe
