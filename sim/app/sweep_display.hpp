// What a sweep shows while it runs: a line on a terminal, or JSON lines for machines.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "sim/app/app.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/store/run_record.hpp"
#include "sim/sweep/estimate.hpp"
#include "sim/sweep/execute.hpp"
#include "sim/sweep/remaining.hpp"

namespace bubblesim::app {

enum class SweepOutput : std::uint8_t { kText, kJsonLines };

/// How far a sweep is.
struct SweepCounts {
  std::size_t planned = 0;    ///< runs of this shard
  std::size_t stored = 0;     ///< of these, done or failed before this start
  std::size_t to_do = 0;      ///< of these, to be done now
  std::size_t done = 0;       ///< now, failed ones too
  std::size_t failed = 0;     ///< of these
};

/// Told of runs by any thread; shown by one.
class SweepDisplay {
 public:
  SweepDisplay(SweepCounts counts, sweep::BestSoFar best, SweepOutput output);

  void started(const store::PlannedRun& run);
  /// `took`: by the clock on the wall, where it is known better than by started().
  void finished(const store::RunRecord& record, std::optional<Duration> took = std::nullopt);
  /// Rewrites the line, or prints one; a few times a second at most.
  void show(bool stopping);
  /// Ends the line.
  void clear();

  [[nodiscard]] SweepCounts counts() const;
  [[nodiscard]] sweep::BestSoFar best() const;
  /// Time that all threads together spent in runs.
  [[nodiscard]] Duration time_in_runs() const;
  [[nodiscard]] Duration elapsed() const;
  /// A counter of severity error in a run's results.
  [[nodiscard]] bool untrusted() const;

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] std::string line(bool stopping) const;
  void print_progress(bool stopping) const;
  void print_run(const store::RunRecord& record) const;
  [[nodiscard]] double rate() const;

  mutable std::mutex mutex_;
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

/// "120.5 (specinf, /a = 1)"; "none yet"; where none keeps enough of training, which keeps most.
[[nodiscard]] std::string best_text(const sweep::BestSoFar& best);

// What `bubblesim sweep --dry-run` says: how many runs, how long, how much memory.

struct SweepForecast {
  sweep::RunCost cost;
  Duration a_run{};         ///< the store's mean if it has runs of the sweep, else the measured
  bool from_store = false;
  std::size_t threads = 1;
  Duration all{};
  std::uint64_t memory = 0;  ///< bytes
};

/// Measures some of the runs that are left.
[[nodiscard]] SweepForecast forecast(const sweep::RemainingRuns& left,
                                     const sweep::ExecuteOptions& options,
                                     const policy::Registry& policies);

struct ForecastSubject {
  std::string sweep;
  std::string store;
  std::size_t points = 0;
  std::size_t runs = 0;
  std::size_t in_shard = 0;
  std::size_t repeated = 0;
};

[[nodiscard]] std::string forecast_text(const ForecastSubject& subject,
                                        const sweep::RemainingRuns& left,
                                        const SweepForecast& cast);
/// One line.
[[nodiscard]] std::string forecast_json(const ForecastSubject& subject,
                                        const sweep::RemainingRuns& left,
                                        const SweepForecast& cast);

}  // namespace bubblesim::app
