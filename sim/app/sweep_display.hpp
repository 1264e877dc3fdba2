// Does a sweep's runs on the threads of this process: shows them on a terminal or as JSON lines,
// stores them, stops.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/shared/app.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/store/results_store.hpp"
#include "sim/store/run_record.hpp"
#include "sim/sweep/execute.hpp"
#include "sim/sweep/plan.hpp"
#include "sim/sweep/remaining.hpp"
#include "sim/sweep/run_journal.hpp"

namespace bubblesim::app {

// The display of a running sweep: a line on a terminal, or JSON lines for machines.

enum class SweepOutput : std::uint8_t { kText, kJsonLines };

/// Progress of a sweep.
struct SweepCounts {
  std::size_t planned = 0;    ///< runs of this shard
  std::size_t stored = 0;     ///< planned runs done or failed before this start
  std::size_t to_do = 0;      ///< planned runs to do now
  std::size_t done = 0;       ///< runs done now, failed ones included
  std::size_t failed = 0;     ///< failed runs among `done`

  [[nodiscard]] bool are_all_done() const { return done >= to_do; }
};

/// Any thread reports runs; one thread shows them.
class SweepDisplay {
 public:
  SweepDisplay(SweepCounts counts, sweep::BestSoFar best, SweepOutput output);

  void started(const store::PlannedRun& run);
  void finished(const store::RunRecord& record);
  /// Rewrites the line, or prints one; a few times a second at most.
  void show(bool stopping);
  /// Removes the line.
  void clear();

  // For when no thread reports runs any more.

  [[nodiscard]] const SweepCounts& counts() const { return counts_; }
  [[nodiscard]] const sweep::BestSoFar& best() const { return best_; }
  /// Time that all threads together spent in runs.
  [[nodiscard]] Duration time_in_runs() const { return in_runs_; }
  [[nodiscard]] Duration elapsed() const;
  /// Whether a run's results have a counter of severity error.
  [[nodiscard]] bool untrusted() const { return untrusted_; }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] std::string line(bool stopping) const;
  void print_progress(bool stopping) const;
  void print_run(const store::RunRecord& record) const;
  [[nodiscard]] double rate() const;

  std::mutex mutex_;
  SweepOutput output_;
  SweepCounts counts_;
  sweep::BestSoFar best_;
  std::map<std::uint64_t, Clock::time_point> in_flight_;  // by index of the run
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_{};
  Duration in_runs_{};
  std::size_t failures_told_ = 0;
  bool untrusted_ = false;
  ProgressLine progress_;
};

/// "1h02m", "3m20s", "12s".
[[nodiscard]] std::string short_time(Duration span);

/// "120.5 (specinf, /a = 1)" or "none yet"; if no run keeps enough of training, the one that keeps
/// most.
[[nodiscard]] std::string best_text(const sweep::BestSoFar& best);

// Does a sweep's runs on the threads of this process.

// This process's share of a sweep, and its threads: from the command line and Slurm's environment.

/// "INDEX/COUNT", or "slurm": the place of this process among those of its job array, of its srun,
/// or of both. Fault: another text; or this is one of several processes of mpirun or srun, each of
/// which would do the same runs.
[[nodiscard]] Result<sweep::Shard> shard_of_this_process(const std::string& text);

/// Threads for runs by default: cores that this process may use; shared among the processes of this
/// host unless each is bound to some of its own.
[[nodiscard]] std::size_t usual_threads();

/// Runs `runs` and adds their records to `store`; those that `dead` journals speak against are
/// stored as failed, or come last and alone. A first Ctrl-C or other stop signal lets the runs in
/// flight end; a second ends the process with 130 as soon as finished runs are stored. Fault: the
/// store's; no further run is begun then. `journal`, unless null, lists the runs in flight;
/// `policy_bound` is that of policy_options.hpp, `kept_in` that of execute.hpp.
[[nodiscard]] Result<void> run_sweep_here(
    const std::vector<store::PlannedRun>& runs, const sweep::DeadJournals& dead,
    const policy::Registry& registry, const sweep::ExecuteOptions& options,
    store::ResultsStore& store, std::unique_ptr<sweep::RunJournal> journal, SweepDisplay& display,
    Duration policy_bound, const std::string& kept_in);

}  // namespace bubblesim::app
