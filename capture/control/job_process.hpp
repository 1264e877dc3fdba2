// Runs a command as a shell would: same input, outputs, folder and terminal; signals passed on.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/child_process.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

// The signals that a program which waits for its jobs handles itself.

/// The signals that jobs are sent on (SIGINT, SIGTERM, SIGHUP, SIGQUIT), and SIGCHLD.
[[nodiscard]] sigset_t awaited_signals();

/// awaited_signals(), blocked for the calling thread as long as this lives; threads started
/// meanwhile inherit that. SIGCHLD gets its standard action: an ignored one, which may be
/// inherited, would take children's exit codes from us.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  /// The thread's mask as it was: a job's.
  [[nodiscard]] const sigset_t& previous_mask() const { return mask_; }

 private:
  sigset_t mask_{};
};

/// One at a time in a process, used by one thread, which blocks SIGINT, SIGTERM, SIGHUP, SIGQUIT
/// and SIGCHLD as long as the object lives. A signal that somebody sent to this process is sent on
/// to the job; one from the terminal went to the job already.
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
