// Ctrl-C, SIGQUIT, SIGTERM and SIGHUP as requests: while it lives, they are counted and end nothing
// by themselves. A SIGHUP that nohup has the process ignore stays ignored.
#pragma once

#include <array>
#include <atomic>
#include <csignal>

namespace bubblesim::app {

/// One at a time in a process.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// How many have come.
  [[nodiscard]] int count() const;
  /// Whether one has come, for what is polled.
  [[nodiscard]] const std::atomic<bool>& stop() const;

 private:
  static constexpr std::array kSignals{SIGINT, SIGQUIT, SIGTERM, SIGHUP};

  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace bubblesim::app
