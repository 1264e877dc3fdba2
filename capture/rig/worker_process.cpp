#include "capture/rig/worker_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "sim/base/input_file.hpp"

namespace bubblesim::capture {
namespace {

constexpr std::size_t kMostWords = 500;  // of stderr in a fault: the last of them

std::string last_words(const std::string& path) {
  std::string text = read_text_file(path).value_or(std::string());
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (text.size() > kMostWords) text = "..." + text.substr(text.size() - kMostWords);
  return text;
}

}  // namespace

Result<WorkerProcess> WorkerProcess::start(const std::vector<std::string>& command,
                                           const Variables& environment,
                                           const std::string& error_file) {
  const int said = ::open(error_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (said < 0) return fail(error_file, {}, std::string("cannot be opened: ") + strerror(errno));
  const auto pid =
      start_child(command, environment, {{}, ChildGroup::kOwn, kNothing, said, said});
  ::close(said);
  if (!pid) return tl::make_unexpected(pid.error().error);
  return WorkerProcess(*pid, error_file);
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), error_file_(std::move(other.error_file_)),
      end_(other.end_) {}

WorkerProcess::~WorkerProcess() {
  if (pid_ == 0 || end_) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool WorkerProcess::ended() {
  if (!end_) end_ = reap_child(pid_);
  return end_.has_value();
}

void WorkerProcess::kill() {
  if (!end_) ::kill(pid_, SIGKILL);
}

std::string WorkerProcess::end_text() const {
  if (!end_) return "still runs";
  const std::string words = last_words(error_file_);
  const std::string tail = words.empty() ? std::string() : ": " + words;
  if (end_->signal != 0) return "killed by signal " + std::to_string(end_->signal) + tail;
  return "exited with " + std::to_string(end_->exit_code) + tail;
}

}  // namespace bubblesim::capture
