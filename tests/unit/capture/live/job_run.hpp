// A job on the stand-in of the driver (tests/fakes/live), with its output and the calls that
// reached the driver.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sim/base/child_process.hpp"
#include "tests/temp_folder.hpp"
#include "tests/unit/capture/live/wait_for.hpp"

namespace bubblesim::capture {

/// A running process; the destructor kills it.
class RunningJob {
 public:
  RunningJob(const std::vector<std::string>& command, const Variables& variables) {
    ChildSettings settings;
    settings.mask.emplace();
    sigemptyset(&*settings.mask);
    settings.input = kNothing;
    const auto pid = start_child(command, variables, settings);
    EXPECT_TRUE(pid);
    if (pid) pid_ = *pid;
  }
  ~RunningJob() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The exit code, or 128 + n if signal n ended it; fails the test after 30 s.
  int wait() {
    std::optional<ChildEnd> end;
    EXPECT_TRUE(becomes_true([&] { return (end = reap_child(pid_)).has_value(); }));
    if (end) pid_ = 0;
    return end ? end->exit_code : -1;
  }

 private:
  pid_t pid_ = 0;
};

inline std::vector<std::string> lines_of_file(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// This process's environment, the folder of the stand-in's library, and its log of calls.
inline Variables driver_environment(const std::string& log) {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (text.starts_with("BUBBLESIM_")) continue;
    variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  variables["LD_LIBRARY_PATH"] = FAKE_DRIVER_FOLDER;
  variables["FAKE_DRIVER_LOG"] = log;
  return variables;
}

/// Calls that reached the driver, in order, without lookups. `process`: of this one; 0: of all.
inline std::vector<std::string> driver_calls(const std::string& log, pid_t process = 0) {
  std::vector<std::string> calls;
  for (const std::string& line : lines_of_file(log)) {
    const std::size_t space = line.find(' ');
    const std::string call = line.substr(space + 1);
    const bool meant = process == 0 || line.substr(0, space) == std::to_string(process);
    if (meant && !call.starts_with("cuGetProcAddress")) calls.push_back(call);
  }
  return calls;
}

}  // namespace bubblesim::capture
