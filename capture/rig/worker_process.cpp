#include "capture/rig/worker_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
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

namespace {

constexpr auto kWatchPeriod = std::chrono::milliseconds(20);

bool gets_ready(const WorkerStatus& seat) {
  return seat.state == WorkerState::kStarting || seat.state == WorkerState::kPreparing;
}

std::uint64_t progress_of(const WorkerStatus& seat) {
  return seat.progress + static_cast<std::uint64_t>(seat.state);
}

}  // namespace

std::uint64_t progress_among(std::span<const WorkerStatus> own,
                             std::span<const WorkerStatus> others) {
  std::uint64_t progress = 0;
  for (const WorkerStatus& seat : own) progress += progress_of(seat);
  if (std::ranges::none_of(own, gets_ready)) return progress;
  for (const WorkerStatus& seat : others) {
    if (gets_ready(seat)) progress += progress_of(seat);
  }
  return progress;
}

Watchdog::Watchdog(std::vector<Watched> watched, Duration patience)
    : watched_(std::move(watched)), patience_(patience), states_(watched_.size()) {
  for (State& state : states_) state.since = std::chrono::steady_clock::now();
  thread_ = std::thread([this] {
    while (!ended_) {
      std::this_thread::sleep_for(kWatchPeriod);
      look();
    }
  });
}

Watchdog::~Watchdog() {
  ended_ = true;
  thread_.join();
}

bool Watchdog::killed(std::size_t index) const {
  const std::scoped_lock lock(mutex_);
  return states_[index].killed;
}

void Watchdog::look() {
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    State& state = states_[i];
    const std::uint64_t progress = watched_[i].progress();
    if (!watched_[i].busy() || progress != state.progress) {
      state.progress = progress;
      state.since = now;
    } else if (now - state.since > patience_ && !state.killed) {
      state.killed = true;
      watched_[i].kill();
    }
  }
}

}  // namespace bubblesim::capture
