// A job on the stand-in of the driver (tests/fakes/live), with its output and the calls that
// reached the driver.
#pragma once

#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

#include "sim/base/child_process.hpp"
#include "tests/temp_folder.hpp"

namespace bubblesim::capture {

[[nodiscard]] std::vector<std::string> lines_of_file(const std::string& path);

/// This process's environment, the folder of the stand-in's library, and its log of calls.
[[nodiscard]] Variables driver_environment(const std::string& log);

/// Calls that reached the driver, in order, without lookups. `process`: of this one; 0: of all.
[[nodiscard]] std::vector<std::string> driver_calls(const std::string& log, pid_t process = 0);

/// A running process; the destructor kills it.
class RunningJob {
 public:
  RunningJob(const std::vector<std::string>& command, const Variables& variables);
  ~RunningJob();
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The exit code, or 128 + n if signal n ended it; fails the test after 30 s.
  int wait();

 private:
  pid_t pid_ = 0;
};

}  // namespace bubblesim::capture
