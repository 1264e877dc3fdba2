#include "sim/run/sweep/estimate.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string_view>

#include "sim/run/run_config.hpp"

namespace bubblesim::run {
namespace {

using Clock = std::chrono::steady_clock;

Duration since(Clock::time_point start) {
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

// From now on the peak is that of what follows.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << '5'; }

}  // namespace

RunCost measure_runs(const std::vector<PlannedRun>& plan, const policy::Registry& registry,
                     const ExecuteOptions& options, Duration budget) {
  RunCost cost;
  InputCache inputs(options.device_folder);
  const auto started = Clock::now();
  const std::size_t most = std::min(plan.size(), kMostMeasured);
  Duration in_runs{};
  for (std::size_t i = 0; i < most && (i == 0 || since(started) < budget); ++i) {
    const PlannedRun& run = plan[place_of(i, plan.size())];
    const auto loading = Clock::now();
    const auto config = parse_run_config(run.config, options.sweep, registry);
    if (config) (void)inputs.load(*config, run.config);  // its fault is the run's too
    if (i == 0) cost.load = since(loading);
    cost.shared = std::max(cost.shared, memory_line("VmRSS:"));
    forget_peak();
    const auto running = Clock::now();
    const RunRecord record = execute_run(run, registry, options, inputs);
    in_runs += since(running);
    ++cost.runs;
    const Bytes peak = peak_memory();
    if (peak > cost.shared) cost.each = std::max(cost.each, Bytes{peak.value - cost.shared.value});
    if (record.status == RunStatus::kFailed && cost.failure.empty()) cost.failure = record.reason;
  }
  cost.run = in_runs / static_cast<std::int64_t>(cost.runs);
  return cost;
}

Bytes peak_memory() { return memory_line("VmHWM:"); }

}  // namespace bubblesim::run
