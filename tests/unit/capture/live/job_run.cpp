#include "tests/unit/capture/live/job_run.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "tests/unit/capture/live/wait_for.hpp"

namespace bubblesim::capture {

std::vector<std::string> lines_of_file(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Variables driver_environment(const std::string& log) {
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

std::vector<std::string> driver_calls(const std::string& log, pid_t process) {
  std::vector<std::string> calls;
  for (const std::string& line : lines_of_file(log)) {
    const std::size_t space = line.find(' ');
    const std::string call = line.substr(space + 1);
    const bool meant = process == 0 || line.substr(0, space) == std::to_string(process);
    if (meant && !call.starts_with("cuGetProcAddress")) calls.push_back(call);
  }
  return calls;
}

RunningJob::RunningJob(const std::vector<std::string>& command, const Variables& variables) {
  ChildSettings settings;
  settings.mask.emplace();
  sigemptyset(&*settings.mask);
  settings.input = kNothing;
  const auto pid = start_child(command, variables, settings);
  EXPECT_TRUE(pid);
  if (pid) pid_ = *pid;
}

RunningJob::~RunningJob() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  wait();
}

int RunningJob::wait() {
  std::optional<ChildEnd> end;
  EXPECT_TRUE(becomes_true([&] { return (end = reap_child(pid_)).has_value(); }));
  if (end) pid_ = 0;
  return end ? end->exit_code : -1;
}

}  // namespace bubblesim::capture
