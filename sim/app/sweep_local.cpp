#include "sim/app/sweep_local.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "sim/app/stop_signals.hpp"
#include "sim/run/sweep/record_writer.hpp"

namespace bubblesim::app {
namespace {

constexpr auto kTick = std::chrono::milliseconds{50};

// Everything that is finished is stored; runs in flight are dropped.
[[noreturn]] void leave_now(run::RecordWriter& writer, SweepDisplay& display) {
  display.clear();
  if (auto stored = writer.finish(); !stored) report_fault(stored.error());
  std::fputs("bubblesim: stopped at once; what was finished is stored\n", stderr);
  std::fflush(nullptr);
  std::_Exit(kExitInterrupted);  // other threads are amid runs
}

}  // namespace

Result<SweepEnd> run_sweep_here(const std::vector<run::PlannedRun>& runs,
                                const policy::Registry& registry,
                                const run::ExecuteOptions& options, run::ResultsStore& store,
                                SweepDisplay& display) {
  StopSignals signals;
  run::RecordWriter writer(store);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> ended{false};
  run::SweepPorts ports;
  ports.next = [&]() -> std::optional<run::PlannedRun> {
    const std::size_t index = next++;
    if (index >= runs.size()) return std::nullopt;
    display.started(runs[index]);
    return runs[index];
  };
  ports.done = [&](run::RunRecord&& record) {
    display.finished(record);
    writer.add(std::move(record));
  };
  ports.stopped = [&] { return signals.count() > 0 || writer.failed(); };
  std::thread watch([&] {
    while (!ended) {
      if (signals.count() > 1) leave_now(writer, display);
      display.show(signals.count() > 0);
      std::this_thread::sleep_for(kTick);
    }
  });
  execute_runs(registry, options, ports);
  ended = true;
  watch.join();
  display.clear();
  BUBBLESIM_RETURN_IF_ERROR(writer.finish());
  const bool all = display.counts().done >= runs.size();
  return all ? SweepEnd::kAllDone : SweepEnd::kStopped;
}

}  // namespace bubblesim::app
