#include "capture/control/spawn_job.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace bubblesim::capture {
namespace {

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> found;
  for (std::string& text : texts) found.push_back(text.data());
  found.push_back(nullptr);
  return found;
}

/// What posix_spawn is told, and released again.
class SpawnPlan {
 public:
  explicit SpawnPlan(const SpawnSettings& settings) {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_setsigmask(&attributes_, &settings.mask);
    short flags = POSIX_SPAWN_SETSIGMASK;
    if (settings.own_group) flags |= POSIX_SPAWN_SETPGROUP;  // group 0: its own
    posix_spawnattr_setflags(&attributes_, flags);
    if (settings.no_input) {
      posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    }
    if (settings.output >= 0) {
      posix_spawn_file_actions_adddup2(&actions_, settings.output, STDOUT_FILENO);
    }
    if (settings.error >= 0) {
      posix_spawn_file_actions_adddup2(&actions_, settings.error, STDERR_FILENO);
    }
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  int run(pid_t& pid, std::vector<std::string> words, std::vector<std::string> settings) {
    return posix_spawnp(&pid, words.front().c_str(), &actions_, &attributes_,
                        pointers(words).data(), pointers(settings).data());
  }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
};

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

tl::expected<pid_t, StartFault> spawn_job(const std::vector<std::string>& command,
                                          const Variables& environment,
                                          const SpawnSettings& settings) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  pid_t pid = 0;
  const int code = SpawnPlan(settings).run(pid, command, std::move(variables));
  if (code != 0) return tl::make_unexpected(start_fault(command.front(), code));
  return pid;
}

std::optional<JobEnd> reap_job(pid_t pid) {
  int status = 0;
  const pid_t ended = waitpid(pid, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return std::nullopt;
  // Somebody else took the status: the end is known, its code is not.
  if (ended < 0) return JobEnd{1, 0};
  if (WIFSIGNALED(status)) return JobEnd{128 + WTERMSIG(status), WTERMSIG(status)};
  return JobEnd{WEXITSTATUS(status), 0};
}

sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kPassedOn) sigaddset(&set, signal);
  sigaddset(&set, SIGCHLD);
  return set;
}

void expect_children() {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, nullptr);
}

}  // namespace bubblesim::capture
