// Runs a command as a shell would: same input, outputs, folder and terminal; signals passed on.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/control/job_environment.hpp"
#include "capture/control/spawn_job.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

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
  ~JobProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Nothing if the job has not ended after `at_most`.
  [[nodiscard]] std::optional<JobEnd> wait(Duration at_most);

 private:
  JobProcess(pid_t pid, const sigset_t& mask) : pid_(pid), mask_(mask) {}
  pid_t pid_;
  sigset_t mask_;  ///< of the thread, as it was
  std::optional<JobEnd> end_;
};

}  // namespace bubblesim::capture
