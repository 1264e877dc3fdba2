#include "sim/base/child_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace bubblesim {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> found;
  for (std::string& text : texts) found.push_back(text.data());
  found.push_back(nullptr);
  return found;
}

/// What posix_spawn is told, and released again.
class SpawnPlan {
 public:
  explicit SpawnPlan(const ChildSettings& settings) {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
    short flags = 0;
    if (settings.mask) {
      posix_spawnattr_setsigmask(&attributes_, &*settings.mask);
      flags |= POSIX_SPAWN_SETSIGMASK;
    }
    if (settings.group == ChildGroup::kOwn) flags |= POSIX_SPAWN_SETPGROUP;  // group 0: its own
    if (settings.group == ChildGroup::kOwnSession) flags |= POSIX_SPAWN_SETSID;
    posix_spawnattr_setflags(&attributes_, flags);
    // Input last: where the parent has none, a descriptor for output may be number 0.
    connect(settings.output, STDOUT_FILENO);
    connect(settings.error, STDERR_FILENO);
    connect(settings.input, STDIN_FILENO);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  int run(pid_t& pid, std::vector<std::string> words, std::vector<std::string> variables) {
    return posix_spawnp(&pid, words.front().c_str(), &actions_, &attributes_,
                        pointers(words).data(), pointers(variables).data());
  }

 private:
  void connect(int from, int stream) {
    if (from == kNothing) {
      const int mode = stream == STDIN_FILENO ? O_RDONLY : O_WRONLY;
      posix_spawn_file_actions_addopen(&actions_, stream, "/dev/null", mode, 0);
    } else if (from != kInherited) {
      posix_spawn_file_actions_adddup2(&actions_, from, stream);
    }
  }

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

tl::expected<pid_t, StartFault> start_child(const std::vector<std::string>& command,
                                            const Variables& environment,
                                            const ChildSettings& settings) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  pid_t pid = 0;
  const int code = SpawnPlan(settings).run(pid, command, std::move(variables));
  if (code != 0) return tl::make_unexpected(start_fault(command.front(), code));
  return pid;
}

std::optional<ChildEnd> reap_child(pid_t pid) {
  int status = 0;
  const pid_t ended = waitpid(pid, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return std::nullopt;
  // Another waiter took the status: the end is known, its code is not.
  if (ended < 0) return ChildEnd{1, 0};
  if (WIFSIGNALED(status)) return ChildEnd{128 + WTERMSIG(status), WTERMSIG(status)};
  return ChildEnd{WEXITSTATUS(status), 0};
}

}  // namespace bubblesim
