// One of the two programs while it runs: a shell that leads a process group of its own, so that a
// signal reaches all that it started.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>
#include <string>

#include "capture/control/job_environment.hpp"
#include "capture/control/spawn_job.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

/// The calling thread's signals that jobs are sent on, and SIGCHLD, blocked as long as this lives;
/// threads started meanwhile inherit that.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  [[nodiscard]] const sigset_t& before() const { return mask_; }

 private:
  sigset_t mask_{};
};

class LiveJob {
 public:
  /// `line` is for /bin/sh. Once.
  [[nodiscard]] Result<void> start(const std::string& line, const Variables& environment,
                                   SpawnSettings settings);

  [[nodiscard]] bool runs() const { return pid_ > 0 && !end_; }
  /// Whether it has ended just now. What it started may go on.
  bool has_just_ended();
  /// To all of its group, after its own end to those that it left.
  void signal(int number) const;

  [[nodiscard]] pid_t group() const { return pid_; }
  [[nodiscard]] const std::optional<JobEnd>& end() const { return end_; }
  [[nodiscard]] Duration ran() const { return ran_; }  ///< zero while it runs

 private:
  pid_t pid_ = 0;
  std::chrono::steady_clock::time_point began_;
  std::optional<JobEnd> end_;
  Duration ran_{};
};

}  // namespace bubblesim::capture
