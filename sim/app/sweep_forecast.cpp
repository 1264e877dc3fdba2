#include "sim/app/sweep_forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "sim/app/sweep_display.hpp"
#include "sim/base/json.hpp"

namespace bubblesim::app {
namespace {

constexpr Duration kMeasuring = std::chrono::seconds{5};

double megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace

SweepForecast forecast(const sweep::RemainingRuns& left, const sweep::ExecuteOptions& options,
                       const policy::Registry& policies) {
  SweepForecast out;
  if (left.runs.empty()) return out;
  out.cost = sweep::measure_runs(left.runs, policies, options, kMeasuring);
  out.from_store = left.timed > 0;
  out.a_run = out.from_store ? left.cpu / static_cast<std::int64_t>(left.timed) : out.cost.run;
  out.threads = std::min(options.threads, left.runs.size());
  const auto rounds = static_cast<std::int64_t>(left.runs.size());
  out.all = out.cost.load + out.a_run * rounds / static_cast<std::int64_t>(out.threads);
  out.memory = out.cost.shared.value + out.threads * out.cost.run_bytes.value;
  return out;
}

std::string forecast_text(const ForecastSubject& subject, const sweep::RemainingRuns& left,
                          const SweepForecast& cast) {
  std::string text = fmt::format("sweep {}: {} points, {} runs", subject.sweep, subject.points,
                                 subject.runs);
  if (subject.in_shard != subject.runs) {
    text += fmt::format(", {} of them in this shard", subject.in_shard);
  }
  if (subject.repeated > 0) text += fmt::format(" ({} more are equal to others)", subject.repeated);
  text += fmt::format("\nin {}: {} done, {} failed; {} to do\n", subject.store, left.done,
                      left.failed, left.runs.size());
  if (left.runs.empty()) return text;
  const std::string measured = fmt::format("{} measured now", cast.cost.runs);
  text += fmt::format("time:   about {} on {} threads: {:.3f} s a run ({}), "
                      "{:.3f} s to load inputs\n",
                      short_time(cast.all), cast.threads, to_seconds(cast.a_run),
                      cast.from_store ? "mean of those in the store" : "mean of " + measured,
                      to_seconds(cast.cost.load));
  text += fmt::format("memory: about {:.0f} MB: {:.0f} MB shared and {:.0f} MB a thread ({})\n",
                      megabytes(cast.memory), megabytes(cast.cost.shared.value),
                      megabytes(cast.cost.run_bytes.value), measured);
  if (!cast.cost.failure.empty()) {
    text += fmt::format("a measured run failed: {}\n", cast.cost.failure);
  }
  return text;
}

std::string forecast_json(const ForecastSubject& subject, const sweep::RemainingRuns& left,
                          const SweepForecast& cast) {
  const Json json{{"event", "dry_run"},
                  {"sweep", subject.sweep},
                  {"points", subject.points},
                  {"runs", subject.runs},
                  {"in_shard", subject.in_shard},
                  {"repeated", subject.repeated},
                  {"store", subject.store},
                  {"done", left.done},
                  {"failed", left.failed},
                  {"to_do", left.runs.size()},
                  {"threads", cast.threads},
                  {"run_s", to_seconds(cast.a_run)},
                  {"run_s_from", cast.from_store ? "store" : "measured"},
                  {"measured_runs", cast.cost.runs},
                  {"load_s", to_seconds(cast.cost.load)},
                  {"total_s", to_seconds(cast.all)},
                  {"shared_bytes", cast.cost.shared.value},
                  {"thread_bytes", cast.cost.run_bytes.value},
                  {"memory_bytes", cast.memory},
                  {"failure", cast.cost.failure.empty() ? Json(nullptr) : Json(cast.cost.failure)}};
  return compact_text(json) + "\n";
}

}  // namespace bubblesim::app
