#include "sim/sweep/estimate.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <string_view>

#include "sim/base/json.hpp"
#include "sim/run/run_config.hpp"
#include "sim/sweep/run_key.hpp"

namespace bubblesim::sweep {
namespace {

using Clock = std::chrono::steady_clock;

Duration elapsed(Clock::time_point start) {
  return std::chrono::duration_cast<Duration>(Clock::now() - start);
}

// A line of /proc/self/status such as "VmRSS:   1234 kB".
Bytes memory_line(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    std::uint64_t kib = 0;
    if (key == name && status >> kib) return Bytes{kib * 1024};
    status.ignore(1 << 16, '\n');
  }
  return {};
}

constexpr std::size_t kMostMeasured = 8;

// The n-th of places that lie evenly in the plan however many are taken: 0, 1/2, 1/4, 3/4, ...
std::size_t place_of(std::size_t n, std::size_t size) {
  double place = 0;
  for (double part = 0.5; n > 0; n /= 2, part /= 2) place += n % 2 == 1 ? part : 0;
  return static_cast<std::size_t>(place * static_cast<double>(size));
}

// Whether what is at `pointer` is `place` or in it.
bool lies_in(std::string_view pointer, std::string_view place) {
  return pointer.starts_with(place) &&
         (pointer.size() == place.size() || pointer[place.size()] == '/');
}

// Whether a baseline depends on what a sweep sets there: as baseline_keys(), by places alone.
using DependsOn = bool (*)(std::string_view pointer);

bool filler_depends_on(std::string_view pointer) {
  return !lies_in(pointer, "/name") && !lies_in(pointer, "/policies");
}

bool training_depends_on(std::string_view pointer) {
  return filler_depends_on(pointer) && !lies_in(pointer, "/fillers");
}

bool bubbles_depend_on(std::string_view pointer) {
  const auto is_job = [pointer](std::string_view key) {
    return lies_in(pointer, "/training/" + std::string(key));
  };
  return lies_in(pointer, "/device") || lies_in(pointer, "/power") || pointer == "/training" ||
         std::ranges::any_of(kJobKeys, is_job);
}

/// How many different baselines of a kind there are among runs of one sweep, which differ by
/// settings and seeds.
class BaselineCount {
 public:
  explicit BaselineCount(DependsOn depends) : depends_(depends) {}
  void add(const store::PlannedRun& run) {
    std::string text;
    for (const store::Setting& setting : run.settings) {
      if (depends_(setting.pointer)) text += setting.pointer + '=' + setting.value + '\n';
    }
    if (depends_("/seed")) text += std::to_string(run.seed);
    texts_.insert(std::move(text));
  }
  [[nodiscard]] std::size_t count() const { return texts_.size(); }

 private:
  DependsOn depends_;
  std::set<std::string> texts_;
};

// Of those of the whole plan, what took `made` for the measured runs.
Duration whole(Duration made, DependsOn depends,
               const std::vector<const store::PlannedRun*>& measured,
               const std::vector<store::PlannedRun>& plan) {
  BaselineCount seen(depends), all(depends);
  for (const store::PlannedRun* run : measured) seen.add(*run);
  for (const store::PlannedRun& run : plan) all.add(run);
  return made / static_cast<std::int64_t>(seen.count()) * static_cast<std::int64_t>(all.count());
}

// A run of the plan on average, where the measured ones took `in_runs`: what parts do alone is
// simulated once for all runs that need it, and measured runs, far from each other, share less.
Duration mean_run(Duration in_runs, const run::BaselineCache& baselines,
                  const std::vector<const store::PlannedRun*>& measured,
                  const std::vector<store::PlannedRun>& plan) {
  const Duration training = baselines.training.made().time;
  const Duration fillers = baselines.fillers.made().time;
  const Duration bubbles = baselines.bubbles.made().time;
  const Duration own = std::max(Duration{}, in_runs - training - fillers - bubbles) /
                       static_cast<std::int64_t>(measured.size());
  return own + (whole(training, &training_depends_on, measured, plan) +
                whole(fillers, &filler_depends_on, measured, plan) +
                whole(bubbles, &bubbles_depend_on, measured, plan)) /
                   static_cast<std::int64_t>(plan.size());
}

// From now on the peak is that of what follows.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << '5'; }

}  // namespace

RunCost measure_runs(const std::vector<store::PlannedRun>& plan, const policy::Registry& registry,
                     const ExecuteOptions& options, Duration budget) {
  RunCost cost;
  SharedWork shared(options.device_folder);
  const auto started = Clock::now();
  const std::size_t most = std::min(plan.size(), kMostMeasured);
  Duration in_runs{};
  std::vector<const store::PlannedRun*> measured;
  for (std::size_t i = 0; i < most && (i == 0 || elapsed(started) < budget); ++i) {
    const store::PlannedRun& run = plan[place_of(i, plan.size())];
    const auto loading = Clock::now();
    const auto config = run::parse_run_config(run.config, options.sweep, registry);
    if (config) {  // a fault in loading is the run's too
      (void)shared.inputs.load(*config, Json::parse(run.config, nullptr, false));
    }
    if (i == 0) cost.load = elapsed(loading);
    cost.shared = std::max(cost.shared, memory_line("VmRSS:"));
    forget_peak();
    const auto running = Clock::now();
    const store::RunRecord record = execute_run(run, registry, options, shared);
    in_runs += elapsed(running);
    measured.push_back(&run);
    const Bytes peak = peak_memory();
    if (peak > cost.shared)
      cost.run_bytes = std::max(cost.run_bytes, Bytes{peak.value - cost.shared.value});
    if (record.status == store::RunStatus::kFailed && cost.failure.empty())
      cost.failure = record.reason;
  }
  cost.runs = measured.size();
  cost.run = mean_run(in_runs, shared.baselines, measured, plan);
  return cost;
}

Bytes peak_memory() { return memory_line("VmHWM:"); }

}  // namespace bubblesim::sweep
