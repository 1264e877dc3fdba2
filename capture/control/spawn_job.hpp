// Starts a command as a shell would, and asks whether it has ended.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "capture/control/job_environment.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

struct JobEnd {
  int exit_code = 0;  ///< as shells give it: 128 + n where signal n ended the job
  int signal = 0;     ///< 0: it exited
};

/// A command that could not be started: `exit_code` is 127 or 126.
struct StartFault {
  Error error;
  int exit_code = kExitNotFound;
};

struct SpawnSettings {
  sigset_t mask{};         ///< the job's signal mask
  bool own_group = false;  ///< a process group of its own: signals of the terminal do not reach it
  bool no_input = false;   ///< standard input is empty
  int output = -1;         ///< descriptor for standard output; -1: this program's
  int error = -1;          ///< for standard error
};

/// `command` is not empty; its first word is looked for in PATH.
[[nodiscard]] tl::expected<pid_t, StartFault> spawn_job(const std::vector<std::string>& command,
                                                        const Variables& environment,
                                                        const SpawnSettings& settings);

/// Nothing while the job runs. A child of this process; asked again after its end: exit code 1.
[[nodiscard]] std::optional<JobEnd> reap_job(pid_t pid);

/// The signals that jobs are sent on (SIGINT, SIGTERM, SIGHUP, SIGQUIT), and SIGCHLD.
[[nodiscard]] sigset_t awaited_signals();

/// Gives SIGCHLD its standard action: an ignored one, which may be inherited, would take exit
/// codes from us.
void expect_children();

}  // namespace bubblesim::capture
