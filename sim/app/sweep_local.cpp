#include "sim/app/sweep_local.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "sim/app/policy_timeout.hpp"
#include "sim/app/stop_signals.hpp"

namespace bubblesim::app {
namespace {

constexpr auto kSweepTick = std::chrono::milliseconds{50};

/// A sweep on the threads of this process.
class LocalSweep {
 public:
  LocalSweep(const policy::Registry& registry, const sweep::ExecuteOptions& options,
             store::ResultsStore& store, std::unique_ptr<sweep::RunJournal> journal,
             SweepDisplay& display, const SweepEndings& endings)
      : registry_(registry), options_(options), journal_(std::move(journal)), display_(display),
        writer_(store, endings.kept_in),
        timeout_(endings.policy_bound, [this] { keep_finished(writer_, display_); }),
        watch_([this] { watch(); }) {}

  ~LocalSweep() { end_watch(); }
  LocalSweep(const LocalSweep&) = delete;
  LocalSweep& operator=(const LocalSweep&) = delete;

  void give_up(const std::vector<store::PlannedRun>& runs, const sweep::DeadJournals& dead) {
    for (const store::PlannedRun& run : runs) {
      finished(sweep::failed_record(run, options_, sweep::reason_of(dead.suspicion(run.key))));
    }
  }

  void run(const std::vector<store::PlannedRun>& runs, std::size_t threads) {
    std::atomic<std::size_t> next{0};
    sweep::SweepPorts ports;
    ports.next = [&]() -> std::optional<store::PlannedRun> {
      const std::size_t index = next++;
      if (index >= runs.size()) return std::nullopt;
      display_.started(runs[index]);
      if (journal_) journal_->started(runs[index]);
      return runs[index];
    };
    ports.done = [&](store::RunRecord&& record) {
      if (journal_) journal_->ended();
      finished(std::move(record));
    };
    ports.stopped = [&] { return signals_.count() > 0 || writer_.failed(); };
    sweep::ExecuteOptions options = options_;
    options.threads = std::min(threads, runs.size());
    if (!runs.empty()) sweep::execute_runs(registry_, options, ports);
  }

  [[nodiscard]] Result<void> finish() {
    end_watch();
    return writer_.finish();
  }

 private:
  void end_watch() {
    ended_ = true;
    if (watch_.joinable()) watch_.join();
  }

  void finished(store::RunRecord&& record) {
    display_.finished(record);
    writer_.add(std::move(record));
  }

  void watch() {
    while (!ended_) {
      if (signals_.count() > 1) leave_sweep(writer_, display_, journal_.get());
      display_.show(signals_.count() > 0);
      std::this_thread::sleep_for(kSweepTick);
    }
  }

  const policy::Registry& registry_;
  const sweep::ExecuteOptions& options_;
  std::unique_ptr<sweep::RunJournal> journal_;
  SweepDisplay& display_;
  StopSignals signals_{SecondSignal::kIsCounted};
  sweep::RecordWriter writer_;
  PolicyTimeout timeout_;
  std::atomic<bool> ended_{false};
  std::thread watch_;
};

}  // namespace

Result<SweepEnd> run_sweep_here(const sweep::RunsByTrust& runs, const sweep::DeadJournals& dead,
                                const policy::Registry& registry,
                                const sweep::ExecuteOptions& options, store::ResultsStore& store,
                                std::unique_ptr<sweep::RunJournal> journal, SweepDisplay& display,
                                const SweepEndings& endings) {
  {
    LocalSweep sweep(registry, options, store, std::move(journal), display, endings);
    sweep.give_up(runs.none, dead);
    sweep.run(runs.with_others, options.threads);
    sweep.run(runs.alone, 1);
    BUBBLESIM_RETURN_IF_ERROR(sweep.finish());
  }
  display.clear();
  const std::size_t all = runs.none.size() + runs.with_others.size() + runs.alone.size();
  return display.counts().done >= all ? SweepEnd::kAllDone : SweepEnd::kStopped;
}

void keep_finished(sweep::RecordWriter& writer, SweepDisplay& display) {
  display.clear();
  if (auto stored = writer.finish(); !stored) report_fault(stored.error());
}

void leave_sweep(sweep::RecordWriter& writer, SweepDisplay& display,
                 const sweep::RunJournal* journal) {
  keep_finished(writer, display);
  std::fputs("bubblesim: stopped at once; what was finished is stored\n", stderr);
  std::fflush(nullptr);
  if (journal != nullptr) journal->remove();
  std::_Exit(kExitInterrupted);  // other threads are amid runs
}

}  // namespace bubblesim::app
