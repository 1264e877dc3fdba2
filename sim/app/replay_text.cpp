#include "sim/app/replay_text.hpp"

#include <fmt/format.h>

#include <numeric>

#include "sim/base/json.hpp"

namespace bubblesim::app {
namespace {

using workload::RankReplay;
using workload::ReplayReport;

double mean_ms(const std::vector<Duration>& times) {
  const Duration total = std::accumulate(times.begin(), times.end(), Duration{});
  return times.empty() ? 0 : 1e3 * to_seconds(total) / static_cast<double>(times.size());
}

double change_percent(double now, double before) {
  return before == 0 ? 0 : 100 * (now / before - 1);
}

std::vector<std::int64_t> nanoseconds(const std::vector<Duration>& times) {
  std::vector<std::int64_t> values;
  for (const Duration time : times) values.push_back(to_ns(time));
  return values;
}

Json to_json(const ReplayReport& report) {
  Json ranks = Json::array();
  for (const RankReplay& rank : report.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"recorded_iterations_ns", nanoseconds(rank.recorded)},
                     {"simulated_iterations_ns", nanoseconds(rank.simulated)},
                     {"recorded_span_ns", to_ns(rank.recorded_span)},
                     {"simulated_span_ns", to_ns(rank.simulated_span)},
                     {"mean_error", rank.mean_error()},
                     {"span_error", rank.span_error()}});
  }
  return {{"mean_error", report.mean_error()},
          {"worst_error", report.worst_error()},
          {"device_ops", report.device_ops},
          {"events", report.events},
          {"ranks", std::move(ranks)}};
}

}  // namespace

std::string replay_text(const ReplayComparison& comparison) {
  std::string out = "replay alone: simulated against recorded iteration time\n";
  out += fmt::format("{:>6} {:>6} {:>14} {:>14} {:>10} {:>10}\n", "rank", "iters", "recorded_ms",
                     "simulated_ms", "error_%", "span_err_%");
  for (const RankReplay& rank : comparison.unchanged.ranks) {
    out += fmt::format("{:>6} {:>6} {:>14.3f} {:>14.3f} {:>10.3f} {:>10.3f}\n", rank.rank,
                       rank.recorded.size(), mean_ms(rank.recorded), mean_ms(rank.simulated),
                       100 * rank.mean_error(), 100 * rank.span_error());
  }
  out += fmt::format("mean error {:.3f} %, worst rank {:.3f} %\n",
                     100 * comparison.unchanged.mean_error(),
                     100 * comparison.unchanged.worst_error());
  for (const ChangedReplay& changed : comparison.changes) {
    out += fmt::format("\nwhat if {}: change of the mean iteration time\n", changed.change);
    for (std::size_t i = 0; i < changed.report.ranks.size(); ++i) {
      const double before = mean_ms(comparison.unchanged.ranks[i].simulated);
      const double now = mean_ms(changed.report.ranks[i].simulated);
      out += fmt::format("{:>6} {:>14.3f} -> {:>10.3f} ms {:>+9.2f} %\n",
                         changed.report.ranks[i].rank, before, now, change_percent(now, before));
    }
  }
  out += "\n";
  for (const auto& [name, entry] : comparison.counters) {
    out += fmt::format("  {:<8} {:<40} {:>10}  {}\n", severity_name(entry.severity), name,
                       entry.count, entry.help);
  }
  return out;
}

std::string replay_json(const ReplayComparison& comparison) {
  Json changes = Json::array();
  for (const ChangedReplay& changed : comparison.changes) {
    changes.push_back({{"what_if", changed.change}, {"replay", to_json(changed.report)}});
  }
  Json counters = Json::object();
  for (const auto& [name, entry] : comparison.counters) {
    counters[name] = {{"severity", severity_name(entry.severity)}, {"count", entry.count}};
  }
  const Json document = {{"replay", to_json(comparison.unchanged)},
                         {"what_if", std::move(changes)},
                         {"counters", std::move(counters)}};
  return document.dump(1) + "\n";
}

}  // namespace bubblesim::app
