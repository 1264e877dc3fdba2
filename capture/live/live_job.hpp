// One of the two programs while it runs: a shell that leads a process group of its own, so that a
// signal reaches all that it started.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "sim/base/child_process.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

class LiveJob {
 public:
  /// `line` is for /bin/sh. Once.
  [[nodiscard]] Result<void> start(const std::string& line, const Variables& environment,
                                   ChildSettings settings);

  [[nodiscard]] bool runs() const { return pid_ > 0 && !end_; }
  /// Whether it has ended just now. What it started may go on.
  bool has_just_ended();
  /// Signals all of the job's group; after the job's own end, those that it left.
  void signal(int number) const;

  [[nodiscard]] pid_t group() const { return pid_; }
  [[nodiscard]] const std::optional<ChildEnd>& end() const { return end_; }
  [[nodiscard]] Duration ran() const { return ran_; }  ///< zero while it runs

 private:
  pid_t pid_ = 0;
  std::chrono::steady_clock::time_point began_;
  std::optional<ChildEnd> end_;
  Duration ran_{};
};

}  // namespace bubblesim::capture
