// Runs a command as a shell would: same input, outputs, folder and terminal; signals passed on.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/child_process.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

// The signals that a program which waits for its jobs handles itself.

/// The signals that are passed on to jobs (SIGINT, SIGTERM, SIGHUP, SIGQUIT), and SIGCHLD.
[[nodiscard]] sigset_t awaited_signals();

/// Blocks awaited_signals() for the calling thread while it lives; threads started meanwhile
/// inherit the mask. SIGCHLD gets its default action: if it were ignored, as a parent may have left
/// it, children's exit codes would be lost.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  /// The thread's mask before; jobs start with it.
  [[nodiscard]] const sigset_t& previous_mask() const { return mask_; }

 private:
  sigset_t mask_{};
};

/// A process has one at a time, used by one thread, which blocks SIGINT, SIGTERM, SIGHUP, SIGQUIT
/// and SIGCHLD while the object lives. A signal sent to this process is passed on to the job; one
/// from the terminal has reached the job already.
class JobProcess {
 public:
  /// `command` is not empty; its first word is looked for in PATH.
  [[nodiscard]] static tl::expected<std::unique_ptr<JobProcess>, StartFault> start(
      const std::vector<std::string>& command, const Variables& environment);
  JobProcess(const JobProcess&) = delete;
  JobProcess& operator=(const JobProcess&) = delete;
  /// Does not end the job.
  ~JobProcess() = default;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Nothing if the job has not ended after `at_most`.
  [[nodiscard]] std::optional<ChildEnd> wait(Duration at_most);

 private:
  JobProcess() = default;
  BlockedSignals signals_;
  pid_t pid_ = 0;
  std::optional<ChildEnd> end_;
};

}  // namespace bubblesim::capture
