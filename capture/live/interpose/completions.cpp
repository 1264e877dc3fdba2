#include "capture/live/interpose/completions.hpp"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "capture/live/interpose/calls.hpp"

namespace bubblesim::capture::interpose {
namespace {

/// Time between two looks, and so the delay of a completion's notice. A look at one event takes the
/// driver some 100 ns.
constexpr std::chrono::microseconds kPause{20};
constexpr std::chrono::milliseconds kPatience{100};  ///< with a look under way

struct EventCalls {
  using Context = CuResult (*)(Handle*);
  using SetContext = CuResult (*)(Handle);
  using Create = CuResult (*)(Handle*, unsigned);
  using Record = CuResult (*)(Handle, Stream);
  using Query = CuResult (*)(Handle);
  using ExchangeMode = CuResult (*)(int*);

  Context context = reinterpret_cast<Context>(driver_function("cuCtxGetCurrent"));
  SetContext set_context = reinterpret_cast<SetContext>(driver_function("cuCtxSetCurrent"));
  Create create = reinterpret_cast<Create>(driver_function("cuEventCreate"));
  Record record = reinterpret_cast<Record>(driver_function("cuEventRecord"));
  Record record_own = reinterpret_cast<Record>(driver_function("cuEventRecord_ptsz"));
  Query query = reinterpret_cast<Query>(driver_function("cuEventQuery"));
  ExchangeMode exchange_mode =
      reinterpret_cast<ExchangeMode>(driver_function("cuThreadExchangeStreamCaptureMode"));

  [[nodiscard]] bool complete() const {
    return context != nullptr && create != nullptr && record != nullptr && query != nullptr;
  }
};

const EventCalls& calls() {
  static const EventCalls* const found = new EventCalls;
  return *found;
}

/// While another thread captures a graph, the driver lets a thread neither make nor query events,
/// and fails the capture, unless the thread is in this mode.
class RelaxedCapture {
 public:
  RelaxedCapture() {
    if (calls().exchange_mode != nullptr) calls().exchange_mode(&mode_);
  }
  ~RelaxedCapture() {
    if (calls().exchange_mode != nullptr) calls().exchange_mode(&mode_);
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  int mode_ = kCaptureModeRelaxed;
};

std::size_t counts_in_window(const policy::LaunchInfo& info) {
  return info.kind == program::WorkKind::kCollective ? 0 : 1;
}

std::uintptr_t this_thread() {
  static thread_local char mark;
  return reinterpret_cast<std::uintptr_t>(&mark);
}

}  // namespace

Completions::Completions(Tell tell) : tell_(std::move(tell)) {
  // Signals for which a program waits in a thread of its own choice must not go to this thread.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([this] { run(); }).detach();
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Completions::Event Completions::take_event() {
  Event taken;
  if (!calls().complete() || calls().context(&taken.context) != kCuSuccess) return {};
  {
    const std::lock_guard lock(mutex_);
    std::vector<Handle>& unused = free_[taken.context];
    if (!unused.empty()) {
      taken.event = unused.back();
      unused.pop_back();
      return taken;
    }
  }
  const RelaxedCapture relaxed;
  if (calls().create(&taken.event, kEventWithoutTiming) != kCuSuccess) return {};
  return taken;
}

bool Completions::put_event(const SeenLaunch& launch, Event& event) {
  event = take_event();
  if (event.event == nullptr) return false;
  const auto record = launch.per_thread && calls().record_own != nullptr ? calls().record_own
                                                                         : calls().record;
  // An event that cannot be recorded is not kept: its context may be gone, and another context may
  // have its address.
  return record(event.event, launch.stream) == kCuSuccess;
}

Completions::StreamKey Completions::key_of(const SeenLaunch& launch) const {
  const bool own = (launch.per_thread && launch.stream == nullptr) ||
                   launch.stream == reinterpret_cast<Stream>(kOwnStream);
  return {launch.stream, own ? this_thread() : 0};
}

void Completions::follow(const SeenLaunch& launch, bool refused) {
  Event event;
  const bool guessed = !refused && (is_stopped() || !put_event(launch, event));
  if (guessed) event = {};
  const std::lock_guard lock(mutex_);
  if (stopped_) return;  // when a process leaves, the host learns that all its launches have ended
  streams_[key_of(launch)].push_back({event, {launch.info, guessed}});
  in_window_ += counts_in_window(launch.info);
  if (++followed_ == 1) work_.notify_one();
}

Completions::Room Completions::wait_for_room(const std::function<std::uint32_t()>& window,
                                             const std::function<void()>& idle) {
  constexpr std::chrono::milliseconds kLook{10};
  constexpr std::chrono::seconds kLongest{1};
  std::unique_lock lock(mutex_);
  const auto is_full = [&] {
    const std::uint32_t most = window();
    return !stopped_ && most > 0 && in_window_ >= most;
  };
  if (!is_full()) return Room::kAtOnce;
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (is_full()) {
    const bool ended = room_.wait_for(lock, kLook) == std::cv_status::no_timeout;
    if (std::chrono::steady_clock::now() >= end) return Room::kGivenUp;
    if (!ended) idle();
  }
  return Room::kWaited;
}

void Completions::forget(Handle context) {
  std::unique_lock lock(mutex_);
  ++forgotten_;
  for (auto& [key, pending] : streams_) {
    for (Pending& one : pending) {
      if (context != nullptr && one.event.context != context) continue;
      one.end.guessed = one.end.guessed || one.event.event != nullptr;
      one.event = {};
    }
  }
  std::erase_if(free_, [context](const auto& unused) {
    return context == nullptr || unused.first == context;
  });
  still_.wait_for(lock, kPatience, [this] { return !looking_; });
}

void Completions::stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  room_.notify_all();
  work_.notify_all();
  still_.wait_for(lock, kPatience, [this] { return !looking_; });
}

bool Completions::is_valid(std::uint64_t forgotten) {
  const std::lock_guard lock(mutex_);
  return !stopped_ && forgotten_ == forgotten;
}

bool Completions::is_stopped() {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

CuResult Completions::query(const Event& event, std::uint64_t forgotten) {
  static thread_local std::pair<Handle, std::uint64_t> current;  // addresses are used again
  if (event.event == nullptr) return kCuSuccess;
  if (current != std::pair(event.context, forgotten) && calls().set_context != nullptr) {
    current = {event.context, forgotten};
    calls().set_context(event.context);
  }
  return calls().query(event.event);
}

void Completions::take_away(const Head& head, bool reusable, std::uint64_t forgotten) {
  const std::lock_guard lock(mutex_);
  std::deque<Pending>& stream = streams_[head.key];
  stream.pop_front();
  if (stream.empty()) streams_.erase(head.key);
  if (reusable && head.pending.event.event != nullptr && forgotten_ == forgotten) {
    free_[head.pending.event.context].push_back(head.pending.event.event);
  }
  --followed_;
  in_window_ -= counts_in_window(head.pending.end.info);
  room_.notify_all();
}

bool Completions::look() {
  std::vector<Head> first;
  std::uint64_t forgotten = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, pending] : streams_) first.push_back({key, pending.front()});
    forgotten = forgotten_;
  }
  bool any = false;
  for (const Head& head : first) {
    if (!is_valid(forgotten)) break;
    // No lock: the driver may make this thread wait. Only this thread removes heads.
    const CuResult result = query(head.pending.event, forgotten);
    Ended end = head.pending.end;
    end.guessed = end.guessed || result != kCuSuccess;
    if (result == kCuNotReady || !tell_(end)) continue;
    any = true;
    take_away(head, result == kCuSuccess, forgotten);
  }
  return any;
}

void Completions::run() {
  const Inside inside;
  const RelaxedCapture relaxed;
  while (may_look()) {
    const bool any = look();
    {
      const std::lock_guard lock(mutex_);
      looking_ = false;
      still_.notify_all();
    }
    if (!any) std::this_thread::sleep_for(kPause);
  }
  // Never returns: a return would call the driver (~RelaxedCapture), which may be gone.
  for (;;) ::pause();
}

bool Completions::may_look() {
  std::unique_lock lock(mutex_);
  work_.wait(lock, [this] { return stopped_ || followed_ > 0; });
  looking_ = !stopped_;
  return looking_;
}

}  // namespace bubblesim::capture::interpose
