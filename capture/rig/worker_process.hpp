// A process that a rig started: stderr goes to a file; the end is reaped once.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "capture/replay/control_segment.hpp"
#include "sim/base/child_process.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

class WorkerProcess {
 public:
  /// `command[0]` is a path. The worker is in a process group of its own: signals of the terminal
  /// reach the rig only. Fault: it cannot be started.
  [[nodiscard]] static Result<WorkerProcess> start(const std::vector<std::string>& command,
                                                   const Variables& environment,
                                                   const std::string& error_file);
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) = delete;
  /// Kills and reaps the process, if it still lives.
  ~WorkerProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// True once it has ended. Never waits.
  [[nodiscard]] bool ended();
  void kill();
  /// "exited with 3: cannot open job0.plan", "killed by signal 9"; with the end of its stderr.
  [[nodiscard]] std::string end_text() const;

 private:
  WorkerProcess(pid_t pid, std::string error_file)
      : pid_(pid), error_file_(std::move(error_file)) {}

  pid_t pid_;
  std::string error_file_;
  std::optional<ChildEnd> end_;
};

// Kills workers that are stuck. Runs outside of the rig's clock, in the machine's time: a worker
// that never gives back its turn stops a fake clock and all its participants.

/// A number that changes unless a worker with these seats is stuck. Devices prepare one after the
/// other, so a preparing worker is stuck only if all such `others` are.
[[nodiscard]] std::uint64_t progress_among(std::span<const WorkerStatus> own,
                                           std::span<const WorkerStatus> others);

class Watchdog {
 public:
  /// A process under watch. Functions are called by the watchdog's thread.
  struct Watched {
    std::function<bool()> busy;               ///< false: it may be idle; called at each look
    std::function<std::uint64_t()> progress;  ///< changes unless it is stuck
    std::function<void()> kill;
  };

  Watchdog(std::vector<Watched> watched, Duration patience);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Whether the i-th was killed for being stuck.
  [[nodiscard]] bool killed(std::size_t index) const;

 private:
  void look();

  struct State {
    std::uint64_t progress = 0;
    std::chrono::steady_clock::time_point since;
    bool killed = false;
  };
  std::vector<Watched> watched_;
  Duration patience_;
  std::vector<State> states_;
  mutable std::mutex mutex_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace bubblesim::capture
