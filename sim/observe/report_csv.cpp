// CSV: one table of columns, each a name and how its value is made. servers.csv has some of them.
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sim/observe/report.hpp"
#include "sim/observe/result_rows.hpp"
#include "sim/observe/summary.hpp"
#include "sim/text/escaped_text.hpp"

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

/// A span as seconds or milliseconds; its text is exact to the nanosecond.
struct Decimal {
  Duration span{};
  std::size_t digits = 0;
};
Decimal in_s(Duration span) { return {span, 9}; }
Decimal in_ms(Duration span) { return {span, 6}; }
std::optional<Decimal> in_s(const std::optional<Duration>& span) {
  return span ? std::optional(in_s(*span)) : std::nullopt;
}
std::optional<Decimal> in_ms(const std::optional<LatencyValue>& latency) {
  return latency ? std::optional(in_ms(latency->value)) : std::nullopt;
}

/// monostate: the cell is empty.
using CsvValue = std::variant<std::monostate, std::uint64_t, double, Decimal, std::string>;

/// What a column is made of says its type, in empty cells too.
template <class Made>
constexpr CellType kTypeOf = std::is_same_v<Made, std::string> ? CellType::kText
                             : std::is_integral_v<Made>       ? CellType::kInteger
                                                              : CellType::kNumber;
template <class Made>
constexpr CellType kTypeOf<std::optional<Made>> = kTypeOf<Made>;

template <class Made>
CsvValue value_of(Made made) {
  if constexpr (std::is_integral_v<Made>) return static_cast<std::uint64_t>(made);
  else return made;
}
template <class Made>
CsvValue value_of(std::optional<Made> made) {
  return made ? value_of(*std::move(made)) : CsvValue{};
}

struct CsvColumn {
  std::string_view name;
  CellType type;
  CsvValue (*value)(const CsvRow&);

  /// `make` captures nothing.
  template <class Make>
  constexpr CsvColumn(std::string_view column, Make)
      : name(column),
        type(kTypeOf<std::invoke_result_t<Make, const CsvRow&>>),
        value([](const CsvRow& row) { return value_of(Make{}(row)); }) {}
};

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

template <class Made>
struct Maybe {
  using type = std::optional<Made>;
};
template <class Made>
struct Maybe<std::optional<Made>> {
  using type = std::optional<Made>;
};

/// What `make`, a function or a member, gives of something that may not be there.
template <class Held, class Make>
auto maybe(const Held* held, Make make) {
  using Made = typename Maybe<std::decay_t<std::invoke_result_t<Make, const Held&>>>::type;
  return held == nullptr ? Made{} : Made{std::invoke(make, *held)};
}
template <class Held, class Make>
auto maybe(const std::optional<Held>& held, Make make) {
  return maybe(held ? &*held : nullptr, make);
}

template <auto Make>
constexpr auto of_filler = [](const CsvRow& row) { return maybe(row.filler, Make); };

template <auto Make>
constexpr auto of_jobs = [](const CsvRow& row) {
  const bool there = row.filler != nullptr && row.filler->jobs;
  return maybe(there ? &*row.filler->jobs : nullptr, Make);
};

/// A cell that only language-model servers have.
template <auto Make>
constexpr auto of_server = [](const CsvRow& row) {
  const bool there = row.filler != nullptr && row.filler->server;
  return maybe(there ? &*row.filler->server : nullptr, Make);
};

template <auto Make>
constexpr auto of_power = [](const CsvRow& row) { return maybe(power_of(row.policy), Make); };

template <auto Make>
constexpr auto of_power_limit =
    [](const CsvRow& row) { return maybe(row.report.baseline.power_limit, Make); };

template <auto Fraction>
constexpr auto gpu_mean = [](const CsvRow& row) {
  const auto& gpus = row.policy.gpus;
  return gpus.empty() ? std::nullopt : std::optional(mean_over_gpus(gpus, Fraction));
};

/// A figure of one of the row's latencies.
template <auto Latency, auto Figure>
constexpr auto wait = [](const CsvRow& row) {
  return maybe(row.*Latency, [](const LatencySummary& s) { return in_ms((s.*Figure).value); });
};
template <auto Figure>
constexpr auto latency = wait<&CsvRow::latency, Figure>;
template <auto Figure>
constexpr auto ttft = wait<&CsvRow::ttft, Figure>;
template <auto Figure>
constexpr auto tpot = wait<&CsvRow::tpot, Figure>;
template <int kPercent>
constexpr auto tbt =
    of_server<[](const ServerResult& s) { return in_ms(s.tbt.percentile(kPercent)); }>;

const CsvColumn kCsvColumns[] = {
    {"config", [](const CsvRow& r) { return r.report.config; }},
    {"seed", [](const CsvRow& r) { return r.report.seed; }},
    {"device", [](const CsvRow& r) { return r.report.device; }},
    {"ranks", [](const CsvRow& r) { return r.report.ranks; }},
    {"measured",
     [](const CsvRow& r) { return maybe(r.report.measured, &Measurement::place); }},
    {"policy", [](const CsvRow& r) { return r.policy.policy; }},
    {"policy_parameters", [](const CsvRow& r) { return joined(r.policy.parameters); }},
    {"oracle", [](const CsvRow& r) { return r.policy.oracle; }},
    {"simulated_s", [](const CsvRow& r) { return in_s(r.policy.simulated); }},
    {"warmup_s", [](const CsvRow& r) { return in_s(r.policy.warmup); }},
    {"training_iterations", [](const CsvRow& r) { return r.policy.training.iterations; }},
    {"training_iteration_mean_ms",
     [](const CsvRow& r) { return in_ms(r.policy.training.mean_iteration); }},
    {"training_iteration_min_ms",
     [](const CsvRow& r) { return in_ms(r.policy.training.min_iteration); }},
    {"training_iteration_max_ms",
     [](const CsvRow& r) { return in_ms(r.policy.training.max_iteration); }},
    {"training_iterations_per_s",
     [](const CsvRow& r) { return r.policy.training.iterations_per_s; }},
    {"training_samples_per_s", [](const CsvRow& r) { return r.policy.training.samples_per_s; }},
    {"training_normalised_fraction",
     [](const CsvRow& r) { return r.policy.training.normalised_to_alone; }},
    {"training_redone_iterations", [](const CsvRow& r) { return r.policy.training.redone; }},
    {"training_goodput_per_s", [](const CsvRow& r) { return r.policy.training.goodput_per_s; }},
    {"filler", of_filler<&FillerResult::name>},
    {"filler_mode",
     of_filler<[](const FillerResult& f) { return std::string(filler_mode_name(f.mode)); }>},
    {"filler_gpus", of_filler<[](const FillerResult& f) { return f.instances.size(); }>},
    {"filler_gpus_admitted", of_filler<[](const FillerResult& f) { return f.admitted_gpus(); }>},
    {"filler_passes", of_filler<&FillerResult::passes>},
    {"requests_before", of_filler<&FillerResult::requests_before>},
    {"requests_arrived", of_filler<&FillerResult::requests_arrived>},
    {"requests_completed", of_filler<&FillerResult::requests_completed>},
    {"requests_unfinished", of_filler<&FillerResult::requests_unfinished>},
    {"requests_refused", of_filler<&FillerResult::requests_refused>},
    {"requests_within_deadline", of_filler<&FillerResult::requests_within_deadline>},
    {"filler_offered_per_s", of_filler<&FillerResult::offered_per_s>},
    {"filler_requests_per_s", of_filler<&FillerResult::requests_per_s>},
    {"filler_normalised_fraction", of_filler<&FillerResult::normalised_to_own_gpu>},
    {"latency_p50_ms", latency<&LatencySummary::p50>},
    {"latency_p90_ms", latency<&LatencySummary::p90>},
    {"latency_p95_ms", latency<&LatencySummary::p95>},
    {"latency_p99_ms", latency<&LatencySummary::p99>},
    {"latency_max_ms", latency<&LatencySummary::max>},
    {"latency_mean_ms", latency<&LatencySummary::mean>},
    {"latency_lower_bound_from", [](const CsvRow& r) { return lower_bound_from(r.latency); }},
    {"overloaded", of_filler<[](const FillerResult& f) {
       return f.mode == FillerMode::kOnline ? std::optional(f.overloaded) : std::nullopt;
     }>},
    {"ttft_mean_ms", ttft<&LatencySummary::mean>},
    {"ttft_p50_ms", ttft<&LatencySummary::p50>},
    {"ttft_p90_ms", ttft<&LatencySummary::p90>},
    {"ttft_p95_ms", ttft<&LatencySummary::p95>},
    {"ttft_p99_ms", ttft<&LatencySummary::p99>},
    {"ttft_lower_bound_from", [](const CsvRow& r) { return lower_bound_from(r.ttft); }},
    {"tpot_mean_ms", tpot<&LatencySummary::mean>},
    {"tpot_p50_ms", tpot<&LatencySummary::p50>},
    {"tpot_p90_ms", tpot<&LatencySummary::p90>},
    {"tpot_p95_ms", tpot<&LatencySummary::p95>},
    {"tpot_p99_ms", tpot<&LatencySummary::p99>},
    {"tbt_p50_ms", tbt<50>},
    {"tbt_p95_ms", tbt<95>},
    {"tbt_p99_ms", tbt<99>},
    {"tbt_max_ms", tbt<100>},
    {"output_tokens_per_s", of_server<&ServerResult::output_tokens_per_s>},
    {"goodput_per_s", of_server<&ServerResult::goodput_per_s>},
    {"requests_within_limits", of_server<&ServerResult::within_limits>},
    {"server_preemptions", of_server<&ServerResult::preemptions>},
    {"recomputed_tokens", of_server<&ServerResult::recomputed_tokens>},
    {"prefix_hit_tokens", of_server<&ServerResult::prefix_hit_tokens>},
    {"kv_mean_fraction", of_server<&ServerResult::mean_kv_fraction>},
    {"kv_most_fraction", of_server<&ServerResult::most_kv_fraction>},
    {"filler_memory_bytes", of_filler<[](const FillerResult& f) { return f.memory.value; }>},
    {"filler_instances_unplaced", of_filler<&FillerResult::instances_unplaced>},
    {"jobs_submitted", of_jobs<&FillJobs::submitted>},
    {"jobs_finished", of_jobs<&FillJobs::finished>},
    {"jobs_running", of_jobs<&FillJobs::running>},
    {"jobs_waiting", of_jobs<&FillJobs::waiting>},
    {"jobs_makespan_s", of_jobs<[](const FillJobs& j) { return in_s(j.makespan); }>},
    {"jobs_mean_completion_s", of_jobs<[](const FillJobs& j) { return in_s(j.mean_completion); }>},
    {"jobs_deadlines_met", of_jobs<&FillJobs::deadlines_met>},
    {"jobs_deadlines_missed", of_jobs<&FillJobs::deadlines_missed>},
    {"jobs_deadlines_open", of_jobs<&FillJobs::deadlines_open>},
    {"gpu_busy_fraction", gpu_mean<&GpuUse::busy_fraction>},
    {"gpu_busy_without_collectives_fraction", gpu_mean<&GpuUse::busy_without_collectives_fraction>},
    {"training_sm_fraction", gpu_mean<&GpuUse::training_sm_fraction>},
    {"filler_sm_fraction", gpu_mean<&GpuUse::filler_sm_fraction>},
    {"bubble_fraction", gpu_mean<&GpuUse::bubble_fraction>},
    {"bubble_recovered_fraction", [](const CsvRow& r) {
       const auto& gpus = r.policy.gpus;
       return gpus.empty() ? std::nullopt : std::optional(recovered_over_gpus(gpus));
     }},
    {"memory_high_water_bytes",
     [](const CsvRow& r) {
       const Bytes most = memory_high_water(r.policy.gpus);
       return most == Bytes{} ? std::nullopt : std::optional(most.value);
     }},
    {"gpu_power_mean_w", of_power<&PowerSummary::mean_w>},
    {"gpu_power_peak_w", of_power<&PowerSummary::peak_w>},
    {"gpu_clock_mean_mhz", of_power<&PowerSummary::clock_mhz>},
    {"training_iteration_energy_j", of_power<&PowerSummary::iteration_j>},
    {"filler_request_energy_j", of_filler<[](const FillerResult& f) { return request_energy(f); }>},
    {"power_limit_kept_fraction", of_power_limit<&PowerLimitCost::kept>},
    {"power_limit_alone_w", of_power_limit<&PowerLimitCost::limited_w>},
    {"power_unlimited_alone_w", of_power_limit<&PowerLimitCost::unlimited_w>},
    {"policy_calls", [](const CsvRow& r) { return r.policy.activity.calls; }},
    {"policy_holds", [](const CsvRow& r) { return r.policy.activity.holds; }},
    {"policy_hold_mean_ms", [](const CsvRow& r) { return in_ms(r.policy.activity.mean_hold); }},
    {"events", [](const CsvRow& r) { return r.policy.events; }},
    {"replay_error_fraction", [](const CsvRow& r) { return r.report.baseline.replay_error; }},
    {"losses", [](const CsvRow& r) { return losses_of(r); }},
    {"counters", [](const CsvRow& r) { return counts(r); }},
};

struct TextOf {
  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(std::uint64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return shortest_text(value); }
  std::string operator()(Decimal value) const { return decimal(value.span, value.digits); }
  std::string operator()(std::string text) const { return text; }
};

struct CellOf {
  Cell operator()(std::monostate) const { return {}; }
  Cell operator()(std::uint64_t value) const { return static_cast<std::int64_t>(value); }
  Cell operator()(double value) const { return value; }
  /// The double that the CSV's text is read back as.
  Cell operator()(Decimal decimal) const {
    const std::string text = TextOf{}(decimal);
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  Cell operator()(std::string text) const { return text.empty() ? Cell{} : Cell{std::move(text)}; }
};

ResultRow result_row(const CsvRow& row, std::uint32_t policy, std::uint32_t filler) {
  ResultRow result{policy, filler, {}};
  result.cells.reserve(std::size(kCsvColumns));
  for (const CsvColumn& column : kCsvColumns) {
    result.cells.push_back(std::visit(CellOf{}, column.value(row)));
  }
  return result;
}

std::string header_of(std::span<const CsvColumn> columns) {
  return fmt::format("{}\n", fmt::join(columns | std::views::transform(&CsvColumn::name), ","));
}

void append_row(std::string& text, const CsvRow& row, std::span<const CsvColumn> columns) {
  append_csv_line(text, columns | std::views::transform([&row](const CsvColumn& column) {
                          return std::visit(TextOf{}, column.value(row));
                        }));
}

constexpr std::string_view kServersFile[] = {
    "config", "seed", "policy", "filler",
    "ttft_mean_ms", "ttft_p50_ms", "ttft_p90_ms", "ttft_p95_ms", "ttft_p99_ms",
    "tpot_mean_ms", "tpot_p50_ms", "tpot_p90_ms", "tpot_p95_ms", "tpot_p99_ms",
    "latency_mean_ms", "latency_p50_ms", "latency_p90_ms", "latency_p95_ms", "latency_p99_ms",
    "tbt_p50_ms", "tbt_p95_ms", "tbt_p99_ms", "tbt_max_ms",
    "output_tokens_per_s", "goodput_per_s", "requests_within_limits", "server_preemptions",
    "recomputed_tokens", "prefix_hit_tokens", "kv_mean_fraction", "kv_most_fraction"};

/// In a file of servers nothing needs to say that it is a server's.
std::span<const CsvColumn> server_columns() {
  static const std::vector<CsvColumn> columns = [] {
    std::vector<CsvColumn> chosen;
    for (const std::string_view name : kServersFile) {
      chosen.push_back(*std::ranges::find(kCsvColumns, name, &CsvColumn::name));
      if (name == "server_preemptions") chosen.back().name = "preemptions";
    }
    return chosen;
  }();
  return columns;
}

}  // namespace

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

std::string csv_header() { return header_of(kCsvColumns); }

std::string csv_rows(const RunReport& report) {
  std::string text;
  for (const PolicyResult& policy : report.policies) {
    for (const CsvRow& row : rows_of(report, policy)) append_row(text, row, kCsvColumns);
  }
  return text;
}

std::string servers_header() { return header_of(server_columns()); }

std::string servers_rows(const RunReport& report) {
  std::string text;
  for (const PolicyResult& policy : report.policies) {
    for (const CsvRow& row : rows_of(report, policy)) {
      const bool server = row.filler != nullptr && row.filler->server;
      if (server) append_row(text, row, server_columns());
    }
  }
  return text;
}

}  // namespace bubblesim::observe
