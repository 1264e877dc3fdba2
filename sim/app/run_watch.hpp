// While `bubblesim run` simulates: how far it is, on a terminal, and what Ctrl-C means.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

#include "sim/app/app.hpp"
#include "sim/app/own_process.hpp"
#include "sim/app/policy_options.hpp"
#include "sim/run/run_policies.hpp"

namespace bubblesim::app {

/// From its construction on, the first interrupt asks the run to stop and the second ends the
/// program. It has the line of progress to itself. One at a time in a process.
class RunWatch {
 public:
  /// Watches a run in `modes` modes, each under all policies, whose calls last for `policy_bound`
  /// at most (policy_options.hpp).
  RunWatch(ProgressLine& line, std::size_t modes, Duration policy_bound);
  ~RunWatch();
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

  /// Before the run of the next mode; what the options hold lives in the watch.
  void begin_mode(const std::string& name, run::RunOptions& options);
  /// An interrupt has come.
  [[nodiscard]] bool stopped() const { return stop_; }

 private:
  void end_line();
  void watch();
  [[nodiscard]] std::string text();

  ProgressLine& line_;
  const std::size_t modes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;             ///< guarded by mutex_, as are the next three
  std::size_t mode_ = 0;          ///< from 1
  std::string name_;              ///< of the mode
  std::string doing_;
  std::int64_t before_ns_ = 0;    ///< of time_, at the mode's beginning
  std::int64_t all_before_ns_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  run::SimulatedTime time_;
  std::atomic<bool> stop_{false};
  StopSignals signals_;
  PolicyTimeout timeout_;
  std::thread thread_;            ///< last: it uses the rest
};

/// "43 %, about 1:20 left" of what was begun `elapsed` ago; nothing is said of the time before two
/// percent are done. `share` in [0, 1].
[[nodiscard]] std::string progress_text(double share, Duration elapsed);

}  // namespace bubblesim::app
