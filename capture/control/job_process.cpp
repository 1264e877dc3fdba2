#include "capture/control/job_process.hpp"

#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace bubblesim::capture {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kPassedOn) sigaddset(&set, signal);
  sigaddset(&set, SIGCHLD);
  return set;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> found;
  for (std::string& text : texts) found.push_back(text.data());
  found.push_back(nullptr);
  return found;
}

// The job gets the signal mask that this thread had.
int spawn(const std::vector<std::string>& command, const Variables& environment,
          const sigset_t& mask, pid_t& pid) {
  std::vector<std::string> words = command;
  std::vector<std::string> settings;
  for (const auto& [name, value] : environment) settings.push_back(name + "=" + value);
  posix_spawnattr_t attributes;
  if (const int code = posix_spawnattr_init(&attributes); code != 0) return code;
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int code = posix_spawnp(&pid, command.front().c_str(), nullptr, &attributes,
                                pointers(words).data(), pointers(settings).data());
  posix_spawnattr_destroy(&attributes);
  return code;
}

StartFault start_fault(const std::string& name, int code) {
  std::error_code ignored;
  if (code == ENOENT && std::filesystem::exists(name, ignored)) {
    return {{name, {}, "cannot be run: its interpreter does not exist"}, kExitNotExecutable};
  }
  if (code == ENOENT) return {{name, {}, "found no such command"}, kExitNotFound};
  const std::string why = code == ENOEXEC ? "is no program (a script needs a first line #!)"
                                          : std::string("cannot be run: ") + std::strerror(code);
  return {{name, {}, why}, kExitNotExecutable};
}

}  // namespace

tl::expected<std::unique_ptr<JobProcess>, StartFault> JobProcess::start(
    const std::vector<std::string>& command, const Variables& environment) {
  // An ignored SIGCHLD, which may be inherited, would take the exit code from us.
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, nullptr);
  const sigset_t awaited = awaited_signals();
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, &awaited, &mask);
  pid_t pid = 0;
  const int code = spawn(command, environment, mask, pid);
  if (code != 0) {
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    return tl::make_unexpected(start_fault(command.front(), code));
  }
  return std::unique_ptr<JobProcess>(new JobProcess(pid, mask));
}

JobProcess::~JobProcess() { pthread_sigmask(SIG_SETMASK, &mask_, nullptr); }

std::optional<JobEnd> JobProcess::reap() {
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return std::nullopt;
  // Somebody else took the status: the end is known, its code is not.
  if (ended < 0) return JobEnd{1, 0};
  if (WIFSIGNALED(status)) return JobEnd{128 + WTERMSIG(status), WTERMSIG(status)};
  return JobEnd{WEXITSTATUS(status), 0};
}

std::optional<JobEnd> JobProcess::wait(Duration at_most) {
  const auto deadline = Clock::now() + at_most;
  const sigset_t awaited = awaited_signals();
  while (!end_) {
    end_ = reap();
    if (end_) break;
    const auto left = std::max(Duration{}, Duration{deadline - Clock::now()});
    const timespec time{left / std::chrono::seconds(1),
                        (left % std::chrono::seconds(1)).count()};
    siginfo_t info{};
    const int signal = sigtimedwait(&awaited, &info, &time);
    // From the terminal (SI_KERNEL) it went to the whole group, so to the job too.
    if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) kill(pid_, signal);
    if (signal < 0 && errno == EAGAIN) {
      end_ = reap();
      break;
    }
  }
  return end_;
}

}  // namespace bubblesim::capture
