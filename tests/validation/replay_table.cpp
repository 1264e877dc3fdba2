#include "tests/validation/replay_table.hpp"

#include <algorithm>
#include <cstdio>

#include "tests/validation/sensitivity_table.hpp"

namespace bubblesim::validation {
namespace {

std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", 100 * fraction);
  return text;
}

std::string row(const Replayed& replay) {
  const std::string head = "| " + replay.name + " | ";
  if (!replay.fault.empty()) return head + "| | " + replay.fault + " | |\n";
  if (!replay.has_host_calls) return head + "| | no host calls recorded | |\n";
  return head + std::to_string(replay.report.ranks.size()) + " | " +
         std::to_string(replay.iterations()) + " | " + percent(replay.report.mean_error()) +
         " | " + percent(replay.span_error()) + " |\n";
}

std::string section(const std::string& title, const std::vector<Replayed>& replays) {
  const ReplayErrors errors = summarise(replays);
  return "## " + title + "\n\n" + markdown(replays) + "\n" + std::to_string(errors.count) +
         " replayed: mean " + percent(errors.mean) + " %, worst " + percent(errors.worst) +
         " %\n";
}

}  // namespace

ReplayErrors summarise(const std::vector<Replayed>& replays) {
  ReplayErrors summary;
  for (const Replayed& replay : replays) {
    if (!replay.has_host_calls || !replay.fault.empty()) continue;
    ++summary.count;
    summary.mean += replay.report.mean_error();
    summary.worst = std::max(summary.worst, replay.report.mean_error());
  }
  if (summary.count > 0) summary.mean /= static_cast<double>(summary.count);
  return summary;
}

std::string markdown(const std::vector<Replayed>& replays) {
  std::string text =
      "| trace | ranks | iterations | mean error % | span error % |\n|---|---:|---:|---:|---:|\n";
  for (const Replayed& replay : replays) text += row(replay);
  return text;
}

std::string validation_page(const std::string& data_folder) {
  return "# Replay alone against the recording\n\n" +
         section("Each file by itself", replay_all(single_files(data_folder))) + "\n" +
         section("Jobs, their ranks together", replay_all(whole_jobs(data_folder))) + "\n" +
         sensitivity_section(all_sensitivities(data_folder));
}

}  // namespace bubblesim::validation
