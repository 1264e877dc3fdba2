// Ctrl-C, SIGQUIT, SIGTERM and SIGHUP as requests: while it lives, the first ends nothing by
// itself, the second ends the process with 130 at once. A SIGHUP that nohup has the process ignore
// stays ignored.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>

namespace bubblesim::app {

/// kIsCounted: a watch of the command's own ends the process at the second signal, and the third
/// does it at once.
enum class SecondSignal : std::uint8_t { kEnds, kIsCounted };

/// One at a time in a process.
class StopSignals {
 public:
  explicit StopSignals(SecondSignal second = SecondSignal::kEnds);
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
