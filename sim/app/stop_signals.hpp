// Ctrl-C and SIGTERM as requests: while it lives, they are counted and end nothing by themselves.
#pragma once

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

 private:
  struct sigaction interrupt_{};  // what was before
  struct sigaction terminate_{};
};

}  // namespace bubblesim::app
