#include "capture/rig/worker_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace bubblesim::capture {
namespace {

constexpr std::size_t kMostWords = 500;  // of stderr in a fault: the last of them

std::vector<std::string> texts_of(const Variables& environment) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : environment) texts.push_back(name + "=" + value);
  return texts;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

/// stdin from nowhere, both outputs into the file; a process group of its own, so that Ctrl-C ends
/// the rig and not its workers.
class SpawnPlan {
 public:
  explicit SpawnPlan(const std::string& file) {
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);  // group 0: its own
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, file.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions_, STDERR_FILENO, STDOUT_FILENO);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::string last_words(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (text.size() > kMostWords) text = "..." + text.substr(text.size() - kMostWords);
  return text;
}

}  // namespace

Result<WorkerProcess> WorkerProcess::start(const std::vector<std::string>& command,
                                           const Variables& environment,
                                           const std::string& error_file) {
  std::vector<std::string> words = command;
  std::vector<std::string> variables = texts_of(environment);
  const SpawnPlan plan(error_file);
  pid_t pid = 0;
  const int fault = posix_spawn(&pid, command.front().c_str(), plan.actions(),
                                plan.attributes(), pointers(words).data(),
                                pointers(variables).data());
  if (fault != 0) {
    return fail(command.front(), {}, std::string("cannot be started: ") + std::strerror(fault));
  }
  return WorkerProcess(pid, error_file);
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), error_file_(std::move(other.error_file_)),
      status_(other.status_) {}

WorkerProcess::~WorkerProcess() {
  if (pid_ == 0 || status_) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

bool WorkerProcess::ended() {
  if (status_) return true;
  int status = 0;
  const pid_t found = ::waitpid(pid_, &status, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return false;
  status_ = found < 0 ? 1 << 8 : status;
  return true;
}

void WorkerProcess::kill() {
  if (!status_) ::kill(pid_, SIGKILL);
}

std::string WorkerProcess::end_text() const {
  if (!status_) return "still runs";
  const std::string words = last_words(error_file_);
  const std::string tail = words.empty() ? std::string() : ": " + words;
  if (WIFSIGNALED(*status_)) return "killed by signal " + std::to_string(WTERMSIG(*status_)) + tail;
  return "exited with " + std::to_string(WEXITSTATUS(*status_)) + tail;
}

}  // namespace bubblesim::capture
