// A process that a rig started: its words on stderr go to a file, its end is known once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/child_process.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

class WorkerProcess {
 public:
  /// `command[0]` is a path. The worker is in a process group of its own: signals of the terminal
  /// are the rig's. Fault: it cannot be started.
  [[nodiscard]] static Result<WorkerProcess> start(const std::vector<std::string>& command,
                                                   const Variables& environment,
                                                   const std::string& error_file);
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) = delete;
  /// Kills and reaps it, if it still lives.
  ~WorkerProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// True once it has ended. Never waits.
  [[nodiscard]] bool ended();
  void kill();
  /// "exited with 3: cannot open job0.plan", "killed by signal 9"; with the end of what it said.
  [[nodiscard]] std::string end_text() const;

 private:
  WorkerProcess(pid_t pid, std::string error_file)
      : pid_(pid), error_file_(std::move(error_file)) {}

  pid_t pid_;
  std::string error_file_;
  std::optional<ChildEnd> end_;
};

}  // namespace bubblesim::capture
