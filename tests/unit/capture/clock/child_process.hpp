// A forked process that runs a function and ends, without the test framework's exit.
#pragma once

#include <functional>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bubblesim::testing {

class ChildProcess {
 public:
  explicit ChildProcess(const std::function<void()>& work) : pid_(fork()) {
    if (pid_ != 0) return;
    alarm(60);  // ends the child even if the test breaks
    work();
    _exit(0);
  }
  ~ChildProcess() {
    if (!waited_) kill();
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Waits for its end. Returns its exit status, or minus the signal that ended it.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    waited_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  /// Kills it; a zombie is left, or nothing.
  void kill() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  void kill_only() { ::kill(pid_, SIGKILL); }

 private:
  pid_t pid_;
  bool waited_ = false;
};

}  // namespace bubblesim::testing
