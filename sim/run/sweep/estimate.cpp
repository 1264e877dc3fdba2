#include "sim/run/sweep/estimate.hpp"

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

// From now on the peak is that of what follows.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << '5'; }

}  // namespace

RunCost measure_run(const PlannedRun& run, const policy::Registry& registry,
                    const ExecuteOptions& options) {
  RunCost cost;
  InputCache inputs(options.device_folder);
  const auto started = Clock::now();
  const auto config = parse_run_config(run.config, options.sweep, registry);
  if (config) (void)inputs.load(*config, run.config);  // its fault is the run's too
  cost.load = since(started);
  cost.shared = memory_line("VmRSS:");
  forget_peak();
  const auto loaded = Clock::now();
  const RunRecord record = execute_run(run, registry, options, inputs);
  cost.run = since(loaded);
  const Bytes peak = peak_memory();
  if (peak > cost.shared) cost.each = Bytes{peak.value - cost.shared.value};
  if (record.status == RunStatus::kFailed) cost.failure = record.reason;
  return cost;
}

Bytes peak_memory() { return memory_line("VmHWM:"); }

}  // namespace bubblesim::run
