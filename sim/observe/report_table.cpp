// The table for people: rounded and aligned.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "sim/observe/report.hpp"
#include "sim/observe/summary.hpp"

namespace bubblesim::observe {
namespace {

using Cells = std::vector<std::string>;

constexpr std::size_t kTextColumns = 2;  ///< policy and filler: left-aligned

const std::array<const char*, 18> kTitles{
    "policy", "filler", "train_it/s",  "train_norm", "offered/s", "requests/s",
    "infer_norm", "p50_ms", "p90_ms",  "p95_ms", "p99_ms", "before", "done", "left",
    "busy_%", "bubble_%", "recovered_%", "memory_GB"};

std::string ratio(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}
std::string percent(double fraction) { return fmt::format("{:.1f}", 100 * fraction); }
std::string rate(double per_s) { return fmt::format("{:.3f}", per_s); }

/// ">": the true latency is this or more.
std::string milliseconds(const std::optional<LatencySummary>& latency,
                         LatencyValue LatencySummary::*member) {
  if (!latency) return "-";
  const LatencyValue& value = (*latency).*member;
  return fmt::format("{}{:.3f}", value.bound == Bound::kLower ? ">" : "",
                     to_seconds(value.value) * 1e3);
}

Cells latency_cells(const FillerResult& filler) {
  if (filler.overloaded) return Cells(4, "overloaded");
  const auto latency = filler.latency.summary();
  return {milliseconds(latency, &LatencySummary::p50), milliseconds(latency, &LatencySummary::p90),
          milliseconds(latency, &LatencySummary::p95), milliseconds(latency, &LatencySummary::p99)};
}

Cells filler_cells(const FillerResult* filler) {
  if (!filler) return Cells(10, "-");
  const bool online = filler->mode == FillerMode::kOnline;
  Cells cells{filler->offered_per_s ? rate(*filler->offered_per_s) : "-",
              rate(filler->requests_per_s), ratio(filler->normalised_to_own_gpu)};
  const Cells latencies = latency_cells(*filler);
  cells.insert(cells.end(), latencies.begin(), latencies.end());
  cells.push_back(online ? std::to_string(filler->requests_before) : "-");
  cells.push_back(std::to_string(filler->requests_completed));
  cells.push_back(online ? std::to_string(filler->requests_unfinished) : "-");
  return cells;
}

Cells row_cells(const PolicyResult& policy, const std::string& label,
                const FillerResult* filler) {
  Cells cells{label, filler ? filler->name : "-",
              rate(policy.training.iterations_per_s), ratio(policy.training.normalised_to_alone)};
  const Cells of_filler = filler_cells(filler);
  cells.insert(cells.end(), of_filler.begin(), of_filler.end());
  if (policy.gpus.empty()) {  // measured runs do not know
    cells.insert(cells.end(), 4, "-");
    return cells;
  }
  Bytes memory;
  for (const GpuUse& gpu : policy.gpus) memory = std::max(memory, gpu.memory_high_water);
  cells.push_back(percent(mean_over_gpus(policy.gpus, &GpuUse::busy_fraction)));
  cells.push_back(percent(mean_over_gpus(policy.gpus, &GpuUse::bubble_fraction)));
  cells.push_back(percent(recovered_over_gpus(policy.gpus)));
  cells.push_back(memory == Bytes{}
                      ? "-"
                      : fmt::format("{:.1f}", static_cast<double>(memory.value) * 1e-9));
  return cells;
}

/// Letters of a UTF-8 text: its bytes that do not continue one.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  }));
}

void append_row(std::string& text, const Cells& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - width(cells[i]), ' ');
    if (i > 0) line += "  ";
    line += i < kTextColumns ? cells[i] + padding : padding + cells[i];
  }
  text += line + '\n';
}

void append_rows(std::string& text, const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths(kTitles.size(), 0);
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  for (const Cells& row : rows) append_row(text, row, widths);
}

std::string span_text(const std::optional<Duration>& span) {
  return span ? fmt::format("{:.3f} s", to_seconds(*span)) : "-";
}

void append_jobs(std::string& text, const PolicyResult& policy, const std::string& label) {
  for (const FillerResult& filler : policy.fillers) {
    if (!filler.jobs) continue;
    const FillJobs& jobs = *filler.jobs;
    text += fmt::format("fill jobs: {}: {}: {} of {} finished, {} running, {} waiting; mean "
                        "completion {}, makespan {}",
                        label, filler.name, jobs.finished, jobs.submitted, jobs.running,
                        jobs.waiting, span_text(jobs.mean_completion), span_text(jobs.makespan));
    if (jobs.deadlines_met + jobs.deadlines_missed + jobs.deadlines_open > 0) {
      text += fmt::format("; deadlines: {} met, {} missed, {} open", jobs.deadlines_met,
                          jobs.deadlines_missed, jobs.deadlines_open);
    }
    text += '\n';
  }
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

/// Nobody takes figures of a stand-in for a GPU's.
std::string measured_text(const std::optional<Measurement>& measured) {
  if (!measured) return {};
  if (measured->place == "fake") return "; measured on a FAKE GPU (simulated): no measurement";
  return fmt::format("; measured on a {}, {}", measured->place, measured->date);
}

// Recording and repetition are one number to 0.1 %.
bool repeats_as_recorded(const Baseline& alone) {
  return !alone.replay_error || std::abs(*alone.replay_error) <= 0.001;
}

std::string heading(const RunReport& report) {
  const Baseline& alone = report.baseline;
  std::string text = fmt::format(
      "{}: {}, {} ranks, seed {}{}\nalone: {:.3f} it/s, {:.3f} ms an iteration", report.config,
      report.device, report.ranks, report.seed, measured_text(report.measured),
      alone.training_iterations_per_s,
      to_seconds(alone.training_mean_iteration) * 1e3);
  if (alone.recorded_mean_iteration) {
    text += fmt::format("; recorded {:.3f} ms", to_seconds(*alone.recorded_mean_iteration) * 1e3);
  }
  if (alone.replay_error) {
    text += fmt::format("; replay error {:+.2f} %{}", 100 * *alone.replay_error,
                        repeats_as_recorded(alone) ? "" : " !");
  }
  text += '\n';
  if (!repeats_as_recorded(alone)) {
    text +=
        "! repeated, the recorded iterations take another time than once: operations that ran\n"
        "  into the next iteration delay it (program_pass_contradictions), or a rank waits less\n"
        "  for others\n";
  }
  if (!alone.iterations_text.empty()) text += "iterations: " + alone.iterations_text + '\n';
  if (report.ranks_per_gpu > 1) {
    text += fmt::format("folded: each simulated GPU stands for {} of the job's {} ranks\n",
                        report.ranks_per_gpu, report.world_size);
  }
  return text + free_memory_text(alone.bubbles) + '\n';
}

}  // namespace

std::string report_table(const RunReport& report) {
  std::vector<Cells> rows{Cells(kTitles.begin(), kTitles.end())};
  std::string jobs;
  for (const PolicyResult& policy : report.policies) {
    const std::string label = policy_label(policy, report.policies);
    const std::string shown = policy.oracle ? label + " (oracle)" : label;
    const auto marked = [&](std::optional<std::size_t> filler) {
      return has_loss(concerning(report, policy, filler)) ? shown + " !" : shown;
    };
    if (policy.fillers.empty()) rows.push_back(row_cells(policy, marked({}), nullptr));
    for (std::size_t i = 0; i < policy.fillers.size(); ++i) {
      rows.push_back(row_cells(policy, marked(i), &policy.fillers[i]));
    }
    append_jobs(jobs, policy, label);
  }
  std::string text = heading(report);
  append_rows(text, rows);
  if (!jobs.empty()) text += '\n' + jobs;
  return text;
}

}  // namespace bubblesim::observe
