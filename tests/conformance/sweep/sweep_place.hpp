// A workplace with a small sweep over the sample job, from which tests of sweeps start, and a
// program that runs beside the test, so that it can be given signals.
#pragma once

#include <string>
#include <sys/types.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {

/// Two policies with so many seeds each; a run is 500 ms of the sample job.
[[nodiscard]] Json small_sweep(int repetitions);

/// Writes it as sweep.json.
void write_sweep(const Workplace& place, const Json& sweep);

/// The results in a store as text, without wall-clock times or facts of the machine: the same runs
/// give the same bytes.
[[nodiscard]] std::string exported(const Workplace& place, const std::string& store);

/// The last line of `bubblesim sweep --json`; null if there is none.
[[nodiscard]] Json last_event(const std::string& out);

/// `bubblesim ARGUMENTS` in the workplace's folder; output in the files NAME.out and NAME.err
/// there. The destructor kills it if it still runs.
class RunningProgram {
 public:
  /// `before`: shell commands that hold for the program, such as "ulimit -f 100".
  RunningProgram(const Workplace& place, const std::string& name, const std::string& arguments,
                 const std::string& before = "true");
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  void send(int signal) const;
  /// Waits until standard output holds `text` so many times. False: the program ended before, or
  /// two minutes have passed.
  [[nodiscard]] bool says(const std::string& text, std::size_t times = 1);
  /// Waits at most two minutes for its end. Exit code 128 + n: ended by signal n.
  [[nodiscard]] Outcome wait();

 private:
  [[nodiscard]] bool ended();

  const Workplace& place_;
  std::string name_;
  pid_t pid_ = -1;
  int code_ = -1;
};

}  // namespace bubblesim::app_test
