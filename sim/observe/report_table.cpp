// The table for people: rounded and aligned.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/utf8.hpp"
#include "sim/observe/report.hpp"
#include "sim/observe/summary.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::observe {
namespace {

// Marks behind a policy's label, in this order.
constexpr const char* kOracle = " (oracle)";
constexpr const char* kReconstructed = " *";
constexpr const char* kLossy = " !";

/// A policy and one of its fillers, as columns read them.
struct Row {
  const PolicyResult* policy;
  const FillerResult* filler;  ///< nullptr: the policy ran without fillers
  std::string label;           ///< the policy's name with its marks
  std::optional<LatencySummary> latency;
  std::optional<LatencySummary> ttft{};  ///< of a language-model server, as `tpot`
  std::optional<LatencySummary> tpot{};
};

std::string ratio(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}
std::string percent(double fraction) { return fmt::format("{:.1f}", 100 * fraction); }
std::string rate(double per_s) { return fmt::format("{:.3f}", per_s); }

/// A percentile in ms. With fewer than 100 requests the cell also shows their number; with fewer
/// than 20, only their number.
std::string percentile_cell(const std::optional<LatencySummary>& summary,
                            LatencyValue LatencySummary::*member, const LatencyDistribution& all) {
  constexpr std::size_t kFewest = 20;  // below, p95 is the largest
  constexpr std::size_t kMany = 100;   // from here on, p99 is not
  if (!summary) return "-";
  const std::size_t requests = all.completed() + all.unfinished();
  if (requests < kFewest) return fmt::format("of {}", requests);
  const LatencyValue& value = (*summary).*member;
  return fmt::format("{}{:.3f}{}", value.bound == Bound::kLower ? ">" : "",
                     to_seconds(value.value) * 1e3,
                     requests < kMany ? fmt::format(" of {}", requests) : "");
}

template <LatencyValue LatencySummary::*kMember>
std::string latency_cell(const Row& row) {
  if (row.filler && row.filler->overloaded) return "overloaded";
  return row.latency ? percentile_cell(row.latency, kMember, row.filler->latency) : "-";
}

template <LatencyValue LatencySummary::*kMember>
std::string ttft_cell(const Row& row) {
  return percentile_cell(row.ttft, kMember, row.filler->server->ttft);
}

template <LatencyValue LatencySummary::*kMember>
std::string tpot_cell(const Row& row) {
  return percentile_cell(row.tpot, kMember, row.filler->server->tpot);
}

template <int kPercent>
std::string tbt_cell(const Row& row) {
  const auto value = row.filler->server->tbt.percentile(kPercent);
  return value ? fmt::format("{:.3f}", to_seconds(value->value) * 1e3) : "-";
}

/// Requests that waited or ran at an instant, which only online fillers have.
template <std::uint64_t FillerResult::*kMember>
std::string backlog_cell(const Row& row) {
  const bool online = row.filler && row.filler->mode == FillerMode::kOnline;
  return online ? std::to_string(row.filler->*kMember) : "-";
}

/// Measured runs do not know how their GPUs were used.
template <double GpuUse::*kMember>
std::string gpu_cell(const Row& row) {
  return row.policy->gpus.empty() ? "-" : percent(mean_over_gpus(row.policy->gpus, kMember));
}

std::string recovered_cell(const Row& row) {
  return row.policy->gpus.empty() ? "-" : percent(recovered_over_gpus(row.policy->gpus));
}

std::string memory_cell(const Row& row) {
  const Bytes memory = memory_high_water(row.policy->gpus);
  return memory == Bytes{} ? "-" : fmt::format("{:.1f}", static_cast<double>(memory.value) * 1e-9);
}

/// At least three significant digits, without an exponent.
std::string three_digits(double value) {
  const double size = value == 0 ? 0 : std::floor(std::log10(std::abs(value)));
  return fmt::format("{:.{}f}", value, static_cast<int>(std::clamp(2 - size, 0.0, 9.0)));
}

std::string power_cell(const Row& row) {
  const auto power = power_of(*row.policy);
  return power ? fmt::format("{:.1f}", power->mean_w) : "-";
}

std::string iteration_energy_cell(const Row& row) {
  const auto power = power_of(*row.policy);
  return power && power->iteration_j ? fmt::format("{:.1f}", *power->iteration_j) : "-";
}

std::string request_energy_cell(const Row& row) {
  const auto energy = row.filler ? request_energy(*row.filler) : std::nullopt;
  return energy ? three_digits(*energy) : "-";
}

enum class Shown : std::uint8_t {
  kAlways,
  kAmongSeveral,  ///< in the narrow table only where a policy has several fillers
  kWide,
  kMetered,  ///< in the wide table, where power is metered
};

struct Column {
  const char* title;
  Shown shown;
  Align aligned;
  std::string (*cell)(const Row& row);
};

// OUTPUTS.md says which CSV column each of them rounds.
constexpr std::array kColumns{
    Column{"policy", Shown::kAlways, Align::kLeft, [](const Row& row) { return row.label; }},
    Column{"filler", Shown::kAmongSeveral, Align::kLeft,
           [](const Row& row) { return row.filler ? row.filler->name : std::string("-"); }},
    Column{"train it/s", Shown::kWide, Align::kRight,
           [](const Row& row) { return rate(row.policy->training.iterations_per_s); }},
    Column{"train kept", Shown::kAlways, Align::kRight,
           [](const Row& row) { return ratio(row.policy->training.normalised_to_alone); }},
    Column{"filler gained", Shown::kAlways, Align::kRight,
           [](const Row& row) {
             return row.filler ? ratio(row.filler->normalised_to_own_gpu) : std::string("-");
           }},
    Column{"offered/s", Shown::kWide, Align::kRight,
           [](const Row& row) {
             const bool known = row.filler && row.filler->offered_per_s;
             return known ? rate(*row.filler->offered_per_s) : std::string("-");
           }},
    Column{"requests/s", Shown::kAlways, Align::kRight,
           [](const Row& row) {
             return row.filler ? rate(row.filler->requests_per_s) : std::string("-");
           }},
    Column{"p50 ms", Shown::kWide, Align::kRight, latency_cell<&LatencySummary::p50>},
    Column{"p90 ms", Shown::kWide, Align::kRight, latency_cell<&LatencySummary::p90>},
    Column{"p95 ms", Shown::kAlways, Align::kRight, latency_cell<&LatencySummary::p95>},
    Column{"p99 ms", Shown::kWide, Align::kRight, latency_cell<&LatencySummary::p99>},
    Column{"before", Shown::kWide, Align::kRight, backlog_cell<&FillerResult::requests_before>},
    Column{"done", Shown::kWide, Align::kRight,
           [](const Row& row) {
             return row.filler ? std::to_string(row.filler->requests_completed) : std::string("-");
           }},
    Column{"left", Shown::kWide, Align::kRight, backlog_cell<&FillerResult::requests_unfinished>},
    Column{"busy %", Shown::kWide, Align::kRight, gpu_cell<&GpuUse::busy_fraction>},
    Column{"bubble %", Shown::kWide, Align::kRight, gpu_cell<&GpuUse::bubble_fraction>},
    Column{"recovered %", Shown::kAlways, Align::kRight, recovered_cell},
    Column{"memory GB", Shown::kWide, Align::kRight, memory_cell},
    Column{"power W", Shown::kMetered, Align::kRight, power_cell},
    Column{"J/iteration", Shown::kMetered, Align::kRight, iteration_energy_cell},
    Column{"J/request", Shown::kMetered, Align::kRight, request_energy_cell},
};

// Of language-model servers: what users wait for, token by token.
constexpr std::array kServerColumns{
    Column{"policy", Shown::kAlways, Align::kLeft, [](const Row& row) { return row.label; }},
    Column{"server", Shown::kAlways, Align::kLeft, [](const Row& row) { return row.filler->name; }},
    Column{"TTFT mean", Shown::kWide, Align::kRight, ttft_cell<&LatencySummary::mean>},
    Column{"TTFT p50 ms", Shown::kAlways, Align::kRight, ttft_cell<&LatencySummary::p50>},
    Column{"p90", Shown::kWide, Align::kRight, ttft_cell<&LatencySummary::p90>},
    Column{"p95", Shown::kWide, Align::kRight, ttft_cell<&LatencySummary::p95>},
    Column{"p99", Shown::kAlways, Align::kRight, ttft_cell<&LatencySummary::p99>},
    Column{"TPOT mean", Shown::kWide, Align::kRight, tpot_cell<&LatencySummary::mean>},
    Column{"TPOT p50 ms", Shown::kAlways, Align::kRight, tpot_cell<&LatencySummary::p50>},
    Column{"p90", Shown::kWide, Align::kRight, tpot_cell<&LatencySummary::p90>},
    Column{"p95", Shown::kWide, Align::kRight, tpot_cell<&LatencySummary::p95>},
    Column{"p99", Shown::kAlways, Align::kRight, tpot_cell<&LatencySummary::p99>},
    Column{"TBT p50 ms", Shown::kWide, Align::kRight, tbt_cell<50>},
    Column{"p95", Shown::kWide, Align::kRight, tbt_cell<95>},
    Column{"p99", Shown::kWide, Align::kRight, tbt_cell<99>},
    Column{"max", Shown::kWide, Align::kRight, tbt_cell<100>},
    Column{"goodput/s", Shown::kAlways, Align::kRight,
           [](const Row& row) { return ratio(row.filler->server->goodput_per_s); }},
    Column{"tokens/s", Shown::kAlways, Align::kRight,
           [](const Row& row) {
             return fmt::format("{:.1f}", row.filler->server->output_tokens_per_s);
           }},
    Column{"KV %", Shown::kAlways, Align::kRight,
           [](const Row& row) { return percent(row.filler->server->mean_kv_fraction); }},
    Column{"preempted", Shown::kAlways, Align::kRight,
           [](const Row& row) { return std::to_string(row.filler->server->preemptions); }},
};

std::string rows_text(std::span<const Column> all, Columns columns, const RunReport& report,
                      const std::vector<Row>& rows) {
  const bool several = std::ranges::any_of(
      report.policies, [](const PolicyResult& policy) { return policy.fillers.size() > 1; });
  const bool metered = std::ranges::any_of(
      report.policies, [](const PolicyResult& policy) { return power_of(policy).has_value(); });
  std::vector<const Column*> chosen;
  std::vector<std::string> titles;
  std::vector<Align> aligns;
  for (const Column& column : all) {
    if (column.shown == Shown::kMetered && !metered) continue;
    if (columns == Columns::kAll || column.shown == Shown::kAlways ||
        (column.shown == Shown::kAmongSeveral && several)) {
      chosen.push_back(&column);
      titles.emplace_back(column.title);
      aligns.push_back(column.aligned);
    }
  }
  TextTable table(std::move(titles), std::move(aligns), "");
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (const Column* column : chosen) cells.push_back(column->cell(row));
    table.row(std::move(cells));
  }
  return table.text();
}

std::string span_text(const std::optional<Duration>& span) {
  return span ? fmt::format("{:.3f} s", to_seconds(*span)) : "-";
}

void append_jobs(std::string& text, const PolicyResult& policy, const std::string& label) {
  for (const FillerResult& filler : policy.fillers) {
    if (!filler.jobs) continue;
    const FillJobs& jobs = *filler.jobs;
    text += fmt::format(
        "fill jobs: {}: {}: {} of {} finished, {} running, {} waiting; mean "
        "completion {}, makespan {}",
        label, filler.name, jobs.finished, jobs.submitted, jobs.running, jobs.waiting,
        span_text(jobs.mean_completion), span_text(jobs.makespan));
    if (jobs.deadlines_met + jobs.deadlines_missed + jobs.deadlines_open > 0) {
      text += fmt::format("; deadlines: {} met, {} missed, {} open", jobs.deadlines_met,
                          jobs.deadlines_missed, jobs.deadlines_open);
    }
    text += '\n';
  }
}

std::string figure_name(const KnownFigure& known) {
  static const std::map<std::string, std::string> kWords{
      {"training_rate", "training"}, {"filler_rate", "rate"}, {"latency_p95", "p95"}};
  return (known.filler.empty() ? "" : known.filler + ' ') + kWords.at(known.figure);
}

std::string figure_text(const KnownFigure& known) {
  if (known.overloaded) return figure_name(known) + " overloaded";
  if (!known.found) return figure_name(known) + " not known !";
  return fmt::format("{} +-{:.2f} %{}", figure_name(known), 100 * *known.found,
                     known.reached ? "" : " !");
}

/// How long a run without a given length was, and how sure its figures are.
std::string length_text(const PolicyResult& policy, const std::string& label) {
  std::string figures;
  for (const KnownFigure& known : policy.precision->figures) {
    figures += (figures.empty() ? "" : ", ") + figure_text(known);
  }
  return fmt::format("length: {}: {:.1f} s measured after {:.1f} s; {} (confidence {:g} %)\n",
                     label, to_seconds(policy.simulated - policy.warmup), to_seconds(policy.warmup),
                     figures, 100 * policy.precision->confidence);
}

/// The least sure of several runs' figures, by name.
std::string least_sure_text(const std::vector<const PolicyResult*>& runs,
                            const std::vector<PolicyResult>& all) {
  std::vector<std::pair<const KnownFigure*, const PolicyResult*>> least;
  for (const PolicyResult* run : runs) {
    for (const KnownFigure& known : run->precision->figures) {
      if (!known.found || known.overloaded) continue;
      const auto same = std::ranges::find(least, figure_name(known),
                                          [](const auto& one) { return figure_name(*one.first); });
      if (same == least.end()) {
        least.emplace_back(&known, run);
      } else if (*known.found > *same->first->found) {
        *same = {&known, run};
      }
    }
  }
  std::string text;
  for (const auto& [known, run] : least) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", figure_text(*known),
                        policy_label(*run, all));
  }
  return text;
}

/// A line a run, or one for all whose figures are as sure as was asked for: their least sure ones.
std::string lengths_text(const RunReport& report, Columns columns) {
  std::string text;
  std::vector<const PolicyResult*> sure;
  for (const PolicyResult& policy : report.policies) {
    if (!policy.precision) continue;
    const bool known = std::ranges::all_of(
        policy.precision->figures,
        [](const KnownFigure& figure) { return figure.reached || figure.overloaded; });
    if (known) sure.push_back(&policy);
    if (!known || columns == Columns::kAll) {
      text += length_text(policy, policy_label(policy, report.policies));
    }
  }
  if (columns == Columns::kAll || sure.empty()) return text;
  const auto measured = [](const PolicyResult* run) { return run->simulated - run->warmup; };
  const auto [shortest, longest] = std::ranges::minmax_element(sure, {}, measured);
  return fmt::format("length: {:.1f} to {:.1f} s; {}\n{}", to_seconds(measured(*shortest)),
                     to_seconds(measured(*longest)), least_sure_text(sure, report.policies), text);
}

/// What fillers may use in the bubbles, least to most over GPUs.
std::string free_memory_text(const std::vector<BubbleBaseline>& bubbles) {
  std::optional<Bytes> least;
  std::optional<Bytes> most;
  for (const BubbleBaseline& gpu : bubbles) {
    if (!gpu.free_memory_least) continue;
    least = std::min(least.value_or(*gpu.free_memory_least), *gpu.free_memory_least);
    most = std::max(most.value_or(*gpu.free_memory_least), *gpu.free_memory_least);
  }
  if (!least) return {};
  return fmt::format("free in every bubble: {:.1f} to {:.1f} GB by GPU\n",
                     static_cast<double>(least->value) * 1e-9,
                     static_cast<double>(most->value) * 1e-9);
}

/// Says where figures were measured, so that a stand-in's are not taken for a GPU's.
std::string measured_text(const std::optional<Measurement>& measured) {
  if (!measured) return {};
  if (measured->place == "fake") return "; measured on a FAKE GPU (simulated): no measurement";
  return fmt::format("; measured on a {}, {}", measured->place, measured->date);
}

/// What a cap or a clock costs the job itself: "train kept" is of the job under the same limit.
std::string power_limit_text(const std::optional<PowerLimitCost>& cost) {
  if (!cost) return {};
  return fmt::format(
      "power limit: alone, training keeps {:.3f} of its {:.3f} it/s at {:.1f} W a "
      "GPU instead of {:.1f} W\n",
      cost->kept, cost->unlimited_iterations_per_s, cost->limited_w, cost->unlimited_w);
}

// Recording and repetition are one number to 0.1 %.
bool repeats_as_recorded(const Baseline& alone) {
  return !alone.replay_error || std::abs(*alone.replay_error) <= 0.001;
}

std::string alone_text(const RunReport& report) {
  const Baseline& alone = report.baseline;
  std::string text =
      fmt::format("alone: {:.3f} it/s, {:.3f} ms an iteration", alone.training_iterations_per_s,
                  to_seconds(alone.training_mean_iteration) * 1e3);
  if (alone.recorded_mean_iteration) {
    text += fmt::format("; recorded {:.3f} ms", to_seconds(*alone.recorded_mean_iteration) * 1e3);
  }
  if (alone.replay_error) {
    text += fmt::format("; replay error {:+.2f} %{}", 100 * *alone.replay_error,
                        repeats_as_recorded(alone) ? "" : " !");
  }
  text += '\n';
  if (!repeats_as_recorded(alone) && alone.alone_as_recorded) {
    text += "! repeated, the recorded iterations take another time than once: ";
    text += alone.overruns
                ? "operations that ran\n"
                  "  into the next iteration delay it (program_pass_contradictions), or a rank\n"
                  "  waits less for others\n"
                : "the warm-up is\n"
                  "  too short for hosts that run ahead of their GPUs (--warmup), or a rank waits\n"
                  "  less for others\n";
  }
  return text;
}

// Above the narrow table stands what the figures are of, and what makes them doubtful.
std::string heading(const RunReport& report, Columns columns) {
  const Baseline& alone = report.baseline;
  const bool whole = columns == Columns::kAll;
  std::string text =
      escape_controls(fmt::format("{}: {}, {} ranks, seed {}{}", report.config, report.device,
                                  report.ranks, report.seed, measured_text(report.measured)));
  text += '\n';
  if (whole || !repeats_as_recorded(alone)) text += alone_text(report);
  if (!alone.iterations_text.empty()) text += "iterations: " + alone.iterations_text + '\n';
  if (report.ranks_per_gpu > 1) {
    text += fmt::format("folded: each simulated GPU stands for {} of the job's {} ranks\n",
                        report.ranks_per_gpu, report.world_size);
  }
  if (whole) text += free_memory_text(alone.bubbles);
  return text + '\n';
}

}  // namespace

std::string row_label(const RunReport& report, const PolicyResult& policy,
                      std::optional<std::size_t> filler) {
  const bool lossy = has_loss(concerning(report, policy, filler));
  return policy_label(policy, report.policies) + (policy.oracle ? kOracle : "") +
         (policy.reconstruction.empty() ? "" : kReconstructed) + (lossy ? kLossy : "");
}

std::string_view without_marks(std::string_view label) {
  for (const std::string_view mark : {kLossy, kReconstructed, kOracle}) {
    if (label.ends_with(mark)) label.remove_suffix(mark.size());
  }
  return label;
}

std::string server_table(const RunReport& report, Columns columns) {
  std::vector<Row> rows;
  for (const PolicyResult& policy : report.policies) {
    for (const FillerResult& filler : policy.fillers) {
      if (!filler.server) continue;
      rows.push_back({&policy, &filler, policy_label(policy, report.policies), std::nullopt,
                      filler.server->ttft.summary(), filler.server->tpot.summary()});
    }
  }
  return rows.empty() ? "" : rows_text(kServerColumns, columns, report, rows);
}

std::string report_table(const RunReport& report, Columns columns) {
  std::vector<Row> rows;
  std::string notes;
  for (const PolicyResult& policy : report.policies) {
    const std::string label = policy_label(policy, report.policies);
    const auto add_row = [&](const FillerResult* filler, std::optional<std::size_t> place) {
      rows.push_back({&policy, filler, row_label(report, policy, place),
                      filler ? filler->latency.summary() : std::nullopt});
    };
    if (policy.fillers.empty()) add_row(nullptr, {});
    for (std::size_t i = 0; i < policy.fillers.size(); ++i) add_row(&policy.fillers[i], i);
    append_jobs(notes, policy, label);
  }
  notes += lengths_text(report, columns);
  notes += power_limit_text(report.baseline.power_limit);
  std::string text = heading(report, columns);
  text += rows_text(kColumns, columns, report, rows);
  const std::string servers = server_table(report, columns);
  if (!servers.empty()) text += '\n' + servers;
  if (!notes.empty()) text += '\n' + notes;
  return text;
}

}  // namespace bubblesim::observe
