#include "sim/sweep/remaining.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/run/run_config.hpp"
#include "sim/sweep/run_key.hpp"

namespace bubblesim::sweep {
namespace {

using store::number_in;
using store::text_in;

bool comes_before(double value, const store::PlannedRun& run, const std::optional<BestRun>& best,
                  Better better) {
  if (!best || value == best->value) return !best || run.index < best->index;
  return better == Better::kMore ? value > best->value : value < best->value;
}

BestRun run_of(double value, const store::PlannedRun& run, const observe::ResultRow& row) {
  return {value,        text_in(row, "policy"), text_in(row, "policy_parameters"),
          text_in(row, "filler"), run.settings,           run.index,
          text_in(row, "losses")};
}

}  // namespace

Result<BestGoal> parse_best_goal(const std::string& text) {
  BestGoal goal;
  goal.column = text;
  if (text.starts_with("min:") || text.starts_with("max:")) {
    goal.better = text.starts_with("min:") ? Better::kLess : Better::kMore;
    goal.column = text.substr(4);
  }
  std::vector<std::string_view> names;
  for (const observe::ResultColumn& column : observe::result_columns()) {
    if (column.type != observe::CellType::kText) names.push_back(column.name);
  }
  for (const std::string_view name : names) {
    if (name == goal.column) return goal;
  }
  return fail("--best", {}, unknown_name_message("column of numbers", goal.column, names));
}

BestSoFar::BestSoFar(BestGoal goal) : goal_(std::move(goal)) {}

void BestSoFar::look_at(const store::RunRecord& record) {
  for (const observe::ResultRow& row : record.rows) look_at(record.run, row);
}

void BestSoFar::look_at(const store::PlannedRun& run, const observe::ResultRow& row) {
  const auto value = number_in(row, goal_.column);
  if (!value || number_in(row, "oracle").value_or(0) != 0) return;
  const double kept = number_in(row, "training_normalised_fraction").value_or(0);
  if (kept < goal_.training_kept) {
    if (comes_before(kept, run, closest_, Better::kMore)) closest_ = run_of(kept, run, row);
  } else if (comes_before(*value, run, best_, goal_.better)) {
    best_ = run_of(*value, run, row);
  }
}

Result<RemainingRuns> remaining_runs(const std::vector<store::PlannedRun>& plan,
                                     const std::string& sweep, store::ResultsStore& store,
                                     FailedRuns failed, BestSoFar& best) {
  RemainingRuns out;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto done, store.done());
  std::unordered_set<std::string> planned;
  for (const store::PlannedRun& run : plan) planned.insert(run.key);
  std::unordered_set<std::string> kept;
  if (failed == FailedRuns::kKeep) {
    BUBBLESIM_ASSIGN_OR_RETURN(kept, store.failed());
  }
  store::RowFilter of_sweep;
  of_sweep.sweeps = {sweep};
  BUBBLESIM_RETURN_IF_ERROR(store.each_run(of_sweep, [&](const store::RunRecord& run) {
    if (run.status != store::RunStatus::kDone) return;
    out.cpu += run.cpu;
    ++out.timed;
  }));
  BUBBLESIM_RETURN_IF_ERROR(store.each_row(of_sweep, [&](const store::StoredRow& row) {
    if (planned.contains(row.run.key)) best.look_at(row.run, row.row);
  }));
  for (const store::PlannedRun& run : plan) {
    if (done.contains(run.key)) {
      ++out.done;
    } else if (kept.contains(run.key)) {
      ++out.failed;
    } else {
      out.runs.push_back(run);
    }
  }
  return out;
}

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

// How many different baselines of a kind there are among runs of one sweep, which differ by
// settings and seeds.
std::int64_t baseline_count(DependsOn depends, const std::vector<store::PlannedRun>& runs) {
  std::set<std::string> texts;
  for (const store::PlannedRun& run : runs) {
    std::string text;
    for (const store::Setting& setting : run.settings) {
      if (depends(setting.pointer)) text += setting.pointer + '=' + setting.value + '\n';
    }
    if (depends("/seed")) text += std::to_string(run.seed);
    texts.insert(std::move(text));
  }
  return static_cast<std::int64_t>(texts.size());
}

// A run of the plan on average, where the measured ones took `in_runs`: what parts do alone is
// simulated once for all runs that need it, and measured runs, far from each other, share less.
Duration mean_run(Duration in_runs, const run::BaselineCache& baselines,
                  const std::vector<store::PlannedRun>& measured,
                  const std::vector<store::PlannedRun>& plan) {
  Duration made{};  // baselines of the measured runs
  Duration all{};   // those of the whole plan
  for (const auto& [time, depends] :
       {std::pair(baselines.training.made().time, &training_depends_on),
        std::pair(baselines.fillers.made().time, &filler_depends_on),
        std::pair(baselines.bubbles.made().time, &bubbles_depend_on)}) {
    made += time;
    all += time / baseline_count(depends, measured) * baseline_count(depends, plan);
  }
  return std::max(Duration{}, in_runs - made) / static_cast<std::int64_t>(measured.size()) +
         all / static_cast<std::int64_t>(plan.size());
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
  std::vector<store::PlannedRun> measured;
  for (std::size_t i = 0; i < most && (i == 0 || elapsed(started) < budget); ++i) {
    const store::PlannedRun& run = plan[place_of(i, plan.size())];
    const auto loading = Clock::now();
    const auto config = run::parse_run_config(run.config, options.sweep, registry);
    if (config) {  // a fault in loading is the run's too
      (void)shared.load(*config, Json::parse(run.config, nullptr, false));
    }
    if (i == 0) cost.load = elapsed(loading);
    cost.shared = std::max(cost.shared, memory_line("VmRSS:"));
    forget_peak();
    const auto running = Clock::now();
    const store::RunRecord record = execute_run(run, registry, options, shared);
    in_runs += elapsed(running);
    measured.push_back(run);
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
