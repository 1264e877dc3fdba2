// A job on the stand-in of the driver (tests/fakes/live), with what it told and what the driver
// saw.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "sim/base/child_process.hpp"

namespace bubblesim::capture {

/// Removed at the end, with what is in it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] std::string path(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

[[nodiscard]] std::vector<std::string> lines_of_file(const std::string& path);

/// This process's environment, the folder of the stand-in's library, and its log of calls.
[[nodiscard]] Variables driver_environment(const std::string& log);

/// Calls that reached the driver, in order, without lookups; all processes, or one.
[[nodiscard]] std::vector<std::string> driver_calls(const std::string& log, pid_t process = 0);

/// A process that runs; killed at the end of its life here.
class RunningJob {
 public:
  RunningJob(const std::vector<std::string>& command, const Variables& variables);
  ~RunningJob();
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// 128 + n where a signal ended it; fails the test after 30 s.
  int wait();

 private:
  pid_t pid_ = 0;
};

}  // namespace bubblesim::capture
