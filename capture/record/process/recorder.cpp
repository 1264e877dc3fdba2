#include "capture/record/process/recorder.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <exception>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "capture/record/host/host_event.hpp"
#include "capture/record/process/host_link.hpp"
#include "capture/record/process/job_identity.hpp"

namespace bubblesim::capture {
namespace {

constexpr int kTurnSteps = 100;
constexpr Duration kTurnStep = std::chrono::milliseconds(10);

/// The request for recording `number`, from 0; those after the first have no delay.
StartRequest in_own_folder(StartRequest request, std::uint32_t number) {
  if (request.every) {
    request.first_iteration = request.first_iteration.value_or(0) + number * *request.every;
  } else if (request.signal != 0) {
    request.output += "/signal-" + std::to_string(number + 1);
    if (number > 0) request.first_iteration.reset();
  }
  if (number == 0) return request;
  request.delay = {};
  request.start_at_unix_s.reset();
  return request;
}

/// The recording that the signal ends; null: the signal has no effect.
std::atomic<RecordingShare*> signalled{nullptr};

/// Runs in any thread of the job, at any point: it uses atomics, and writes into an eventfd.
void on_signal(int) noexcept {
  const int kept = errno;
  RecordingShare* const share = signalled.load();
  Stop none = Stop::kNo;
  if (share != nullptr && share->records &&
      share->stop.compare_exchange_strong(none, Stop::kSignalled)) {
    share->buffers.wake().notify();
  }
  errno = kept;
}

/// If the job has a handler of its own, it stays, and the request is at fault.
Result<void> take_signal(int number, RecordingShare& share) {
  struct sigaction now {};
  ::sigaction(number, nullptr, &now);
  const bool free = now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN;
  if (!free && now.sa_handler != &on_signal) {
    return fail("the job handles signal " + std::string(choice_name(number, kSignalWords)) +
                " itself; choose another");
  }
  signalled = &share;
  struct sigaction ours {};
  ours.sa_handler = &on_signal;
  ours.sa_flags = SA_RESTART;
  ::sigaction(number, &ours, nullptr);
  return {};
}

}  // namespace

void Recorder::note_failure(const char* what) noexcept {
  share_.board.edit([&](RecorderStatus& status) {
    status.state = RecorderState::kFailed;
    status.message = what;
  });
}

void Recorder::run(StartRequest request, StartOrigin origin) noexcept {
  try {
    for (std::uint32_t number = 0; run_recording(in_own_folder(request, number), origin, share_);
         ++number) {
      Stop by_signal = Stop::kSignalled;
      share_.stop.compare_exchange_strong(by_signal, Stop::kNo);
    }
  } catch (const std::exception& fault) {
    note_failure(fault.what());
    say(std::string("the recording ended: ") + fault.what());
  } catch (...) {
    note_failure("an exception of unknown type");
  }
  active_.store(false);
}

Recorder::Recorder(RecorderSettings settings) : share_(std::move(settings)) {
  share_.board.edit([&](RecorderStatus& status) {
    const JobIdentity& job = share_.settings.job;
    status.pid = job.pid;
    status.rank = job.rank;
    status.world_size = job.world_size;
    status.executable = job.executable;
  });
}

/// A recording whose status is final has nothing left to do, but may not have given up its turn
/// yet: the next request must not be refused for that.
bool Recorder::take_turn() noexcept {
  for (int i = 0; i < kTurnSteps; ++i) {
    bool idle = false;
    if (active_.compare_exchange_strong(idle, true)) return true;
    const RecorderState now = status().state;
    if (now != RecorderState::kIdle && now != RecorderState::kFailed) return false;
    (void)wait_idle(kTurnStep);
  }
  return false;
}

Result<void> Recorder::start(const StartRequest& request, StartOrigin origin) {
  if (exiting_.load()) {
    // If the job ends before its recording begins, the request in its environment is not at fault.
    if (origin == StartOrigin::kEnvironment) return {};
    return fail("the process is exiting");
  }
  if (!take_turn()) {
    const RecorderStatus now = status();
    return fail("a recording is under way (" + std::string(state_name(now.state)) +
                (now.output.empty() ? "" : ", to " + now.output) + "); stop it first");
  }
  if (request.signal != 0) {
    if (auto taken = take_signal(request.signal, share_); !taken) {
      active_.store(false);
      return taken;
    }
  }
  StartRequest absolute = request;
  std::error_code fault;
  if (auto path = std::filesystem::absolute(request.output, fault); !fault) {
    absolute.output = path.string();
  }
  share_.stop.store(Stop::kNo);
  // An exit may have begun since the last check: its stop must not be lost.
  if (exiting_.load()) share_.stop.store(Stop::kExiting);
  const bool later = request.start_at_unix_s.has_value() || request.delay > Duration{};
  share_.board.edit([&](RecorderStatus& status) {
    status.state = later ? RecorderState::kScheduled : RecorderState::kStarting;
    status.output = absolute.output;
    status.message.clear();
    status.recorded = {};
    status.records = status.bytes = status.lost = 0;
    status.iterations = 0;
  });
  try {
    std::thread([this, absolute, origin] {
      ::pthread_setname_np(::pthread_self(), "bubblesim-write");
      run(absolute, origin);
    }).detach();
  } catch (const std::system_error& no_thread) {
    note_failure(no_thread.what());
    active_.store(false);
    return fail(std::string("the system gives no thread: ") + no_thread.what());
  }
  return {};
}

void Recorder::stop(Stop reason) noexcept {
  if (reason == Stop::kExiting) exiting_.store(true);
  if (!active_.load()) return;
  if (reason == Stop::kExiting) {
    share_.stop.store(Stop::kExiting);
  } else {
    Stop was = Stop::kNo;
    while (was != Stop::kExiting && !share_.stop.compare_exchange_weak(was, Stop::kAsked)) {}
  }
  share_.buffers.wake().notify();
}

bool Recorder::wait_idle(Duration longest) const noexcept {
  const timespec pause{0, 500'000};
  const std::int64_t until = monotonic_ns() + to_ns(longest);
  while (active_.load()) {
    if (monotonic_ns() > until) return false;
    ::nanosleep(&pause, nullptr);
  }
  return true;
}

bool Recorder::mark(const std::string& name) {
  if (!host_recording()) return false;
  emit_host_event(MarkEvent{host_now(), host_thread_id(), name});
  return true;
}

void Recorder::abandon() noexcept {
  signalled = nullptr;
  close_host_link();
  share_.buffers.abandon();
  const int file = share_.file_descriptor.load();
  if (file >= 0) ::close(file);
  const int wake = share_.buffers.wake().descriptor();
  if (wake >= 0) ::close(wake);
}

}  // namespace bubblesim::capture
