#include "capture/live/interpose/gate_link.hpp"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/live/interpose/calls.hpp"
#include "capture/live/interpose/own_place.hpp"

namespace bubblesim::capture::interpose {
namespace {

// Finds out when launches have ended: an event behind each, and a thread that queries events.

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

/// Never destroyed: its thread runs until stop(), or the process's end. The thread blocks all
/// signals: they are the program's.
class Completions {
 public:
  /// The end of one launch. `guessed`: the driver gave no event.
  struct Ended {
    policy::LaunchInfo info;
    bool guessed = false;
  };
  /// Called by the thread that queries events. False: no room now; it calls again later.
  using Tell = std::function<bool(const Ended&)>;

  explicit Completions(Tell tell) : tell_(std::move(tell)) {
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
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  /// Called after the launch, in its thread. `info.launch` is its number. A launch that the driver
  /// `refused` counts as ended.
  void follow(const SeenLaunch& launch, bool refused) {
    Event event;
    const bool guessed = !refused && (is_stopped() || !put_event(launch, event));
    if (guessed) event = {};
    const std::lock_guard lock(mutex_);
    if (stopped_)
      return;  // when a process leaves, the host learns that all its launches have ended
    streams_[key_of(launch)].push_back({event, {launch.info, guessed}});
    in_window_ += counts_in_window(launch.info);
    if (++followed_ == 1) work_.notify_one();
  }
  /// Why a launch went on.
  enum class Room : std::uint8_t {
    kAtOnce,
    kWaited,
    kGivenUp,  ///< the wait timed out: work on the GPU may wait for this launch
  };
  /// Waits until fewer than `window` launches are on the GPU, a second at most. Collectives are not
  /// counted: they end only when other ranks launch theirs. `window` is read at each look, 0: no
  /// limit; `idle` is called when nothing has ended for a while.
  Room wait_for_room(const std::function<std::uint32_t()>& window,
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
  /// Every launch followed in this context (null: in all) counts as ended; its events are not
  /// queried any more. Waits for a look under way.
  void forget(Handle context) {
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
  /// From here on the driver is asked nothing, every launch counts as ended, and no thread waits.
  /// Called at the process's exit, when the driver goes away. Waits 100 ms at most for a look under
  /// way.
  void stop() {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    room_.notify_all();
    work_.notify_all();
    still_.wait_for(lock, kPatience, [this] { return !looking_; });
  }

 private:
  struct Event {
    Handle event = nullptr;
    Handle context = nullptr;
  };
  struct Pending {
    Event event;  ///< none: the launch has ended
    Ended end;
  };
  /// The stream; for a thread's own default stream also the thread.
  using StreamKey = std::pair<Stream, std::uintptr_t>;
  struct Head {
    StreamKey key;
    Pending pending;
  };

  [[nodiscard]] Event take_event() {
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
  [[nodiscard]] CuResult query(const Event& event, std::uint64_t forgotten) {
    static thread_local std::pair<Handle, std::uint64_t> current;  // addresses are used again
    if (event.event == nullptr) return kCuSuccess;
    if (current != std::pair(event.context, forgotten) && calls().set_context != nullptr) {
      current = {event.context, forgotten};
      calls().set_context(event.context);
    }
    return calls().query(event.event);
  }
  [[nodiscard]] bool put_event(const SeenLaunch& launch, Event& event) {
    event = take_event();
    if (event.event == nullptr) return false;
    const auto record =
        launch.per_thread && calls().record_own != nullptr ? calls().record_own : calls().record;
    // An event that cannot be recorded is not kept: its context may be gone, and another context
    // may have its address.
    return record(event.event, launch.stream) == kCuSuccess;
  }
  [[nodiscard]] bool is_stopped() {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }
  [[nodiscard]] StreamKey key_of(const SeenLaunch& launch) const {
    const bool own = (launch.per_thread && launch.stream == nullptr) ||
                     launch.stream == reinterpret_cast<Stream>(kOwnStream);
    return {launch.stream, own ? this_thread() : 0};
  }
  /// Queries events. Returns whether any launch had ended.
  bool look() {
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
  /// `reusable`: the event may be used again, if no context was forgotten since.
  void take_away(const Head& head, bool reusable, std::uint64_t forgotten) {
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
  /// Whether events that were seen at this count of forgotten_ may still be queried.
  [[nodiscard]] bool is_valid(std::uint64_t forgotten) {
    const std::lock_guard lock(mutex_);
    return !stopped_ && forgotten_ == forgotten;
  }
  /// Waits for a launch to follow. False: stopped.
  bool may_look() {
    std::unique_lock lock(mutex_);
    work_.wait(lock, [this] { return stopped_ || followed_ > 0; });
    looking_ = !stopped_;
    return looking_;
  }
  void run() {
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

  Tell tell_;
  std::mutex mutex_;
  std::condition_variable work_;   ///< something is followed
  std::condition_variable room_;   ///< something has ended
  std::condition_variable still_;  ///< the thread is outside of the driver
  bool looking_ = false;
  std::uint64_t forgotten_ = 0;  ///< calls of forget(): a look that began earlier starts over
  bool stopped_ = false;
  std::map<StreamKey, std::deque<Pending>> streams_;
  std::map<Handle, std::vector<Handle>> free_;  ///< events by context
  std::size_t followed_ = 0;
  std::size_t in_window_ = 0;  ///< followed launches but collectives
};

namespace {

using std::chrono::steady_clock;

/// A thread that takes part in a clock. It ends its part before or just after the gate takes back
/// the thread's row, with no code of the program in between.
struct ThreadPart {
  std::unique_ptr<ClockPart> part;
  const Link* link = nullptr;
  ~ThreadPart();
};

/// Whether this thread is ending. Never destroyed: destructors may ask to the last moment.
thread_local bool on_its_way_out = false;
ThreadPart::~ThreadPart() { on_its_way_out = true; }
thread_local ThreadPart thread_part;

}  // namespace

Link::Link(const GateSettings& settings)
    : settings_(settings), counts_(open_counts(settings.folder, settings.client)) {
  char* end = nullptr;
  const unsigned long id = std::strtoul(settings_.client.c_str(), &end, 10);
  if (settings_.client.empty() || *end != '\0' || id >= kMostGateClients) {
    note(settings_.folder, settings_.client,
         "goes ungated: " + std::string(kEnvGateClient) + " is no client's number");
    return;
  }
  id_ = ClientId{static_cast<std::uint32_t>(id)};
  turn_ = id == 0 ? Turn::kTraining : Turn::kFiller;
  clock_ = wall_clock();
  gpu_ = std::make_unique<OwnGpu>(settings_.gate, id_);
}

void Link::note_elsewhere() {
  if (!was_elsewhere_.exchange(true)) count(counts_.processes_elsewhere);
}

void Link::open_gate() {
  join();
  // Only a Link takes a place, and this process has no other Link: a place that is its own already
  // was taken before an exec.
  const bool executed = give_up_own_place(settings_.gate, id_);
  auto client = GateClient::open(settings_.gate, id_, *clock_);
  if (!client) {
    count(counts_.ungated_processes);
    note(settings_.folder, settings_.client, "goes ungated: " + client.error().text());
    return;
  }
  client_ = std::move(*client);
  is_open_ = true;
  if (!executed) count(counts_.processes);
  note(settings_.folder, settings_.client, "is gated");
}

bool Link::join() {
  if (on_its_way_out) return false;
  if (thread_part.link == this) return true;
  thread_part.part.reset();
  thread_part.part = clock_->join(turn_);
  thread_part.link = this;
  return true;
}

Completions& Link::completions() {
  std::call_once(follows_, [this] {
    completions_ = new Completions(
        [this](const Completions::Ended& ended) { return tell(ended.info, ended.guessed); });
  });
  return *completions_.load();
}

bool Link::tell(const policy::LaunchInfo& info, bool guessed) {
  const Use use(*this);
  if (!use || !join()) return true;
  // A completion that was lost would leave the client busy for ever in the policy's view.
  if (settings_.completions && !client_->has_room()) return false;
  count(counts_.completions);
  if (guessed) count(counts_.completions_guessed);
  if (settings_.completions) {
    client_->completed(info.kind, info.launch, info.operations);
  }
  return true;
}

void Link::count_launch(const policy::LaunchInfo& info, const Passage& passage, Duration spent) {
  switch (info.kind) {
    case program::WorkKind::kKernel: count(counts_.kernels); break;
    case program::WorkKind::kCollective: count(counts_.collectives); break;
    default: count(counts_.copies);
  }
  count(counts_.blocks, info.blocks);
  if (passage.gate_open) count(counts_.undecided);
  if (passage.held) count(counts_.held);
  count_time(passage.held, spent);
}

void Link::count_time(bool held, Duration spent) {
  count(held ? counts_.held_ns : counts_.passing_ns, static_cast<std::uint64_t>(to_ns(spent)));
}

Duration Link::wait_for_room(const policy::LaunchInfo& info) {
  if (client_->window() == 0 || info.kind == program::WorkKind::kCollective) return {};
  const auto began = steady_clock::now();
  const Completions::Room room = completions().wait_for_room(
      [this] { return client_->window(); }, [this] { client_->look_for_host(); });
  if (room == Completions::Room::kAtOnce) return {};
  const Duration waited = steady_clock::now() - began;
  count(counts_.window_waits);
  if (room == Completions::Room::kGivenUp) count(counts_.window_passed);
  count(counts_.window_ns, static_cast<std::uint64_t>(to_ns(waited)));
  return waited;
}

void Link::before_launch(SeenLaunch& launch) {
  std::call_once(opens_, [this] { open_gate(); });
  const Use use(*this);
  if (!use) return;
  if (!join()) {
    count_launch(launch.info, {.gate_open = true}, Duration{});
    return;
  }
  const Duration waited = wait_for_room(launch.info);
  const Passage passage = client_->launch(launch.info);
  launch.held = passage.held;
  count_launch(launch.info, passage, Duration{steady_clock::now() - launch.began} - waited);
}

void Link::after_launch(const SeenLaunch& launch, CuResult result) {
  const Use use(*this);
  if (!use || !join() || (!settings_.completions && client_->window() == 0)) return;
  const auto began = steady_clock::now();
  SeenLaunch done = launch;
  done.info.launch = client_->last_launch();
  completions().follow(done, result != kCuSuccess);
  count_time(launch.held, steady_clock::now() - began);
}

void Link::iteration() {
  std::call_once(opens_, [this] { open_gate(); });
  const Use use(*this);
  if (!use || !join()) return;
  const std::int64_t now = steady_clock::now().time_since_epoch().count();
  const std::int64_t began = iteration_began_.exchange(now);
  if (began == 0) return;  // the first call marks the start of the first iteration
  count(counts_.iterations);
  client_->iteration_ended(Duration{steady_clock::duration{now - began}});
}

void Link::context_ends(Handle context) {
  if (Completions* const known = completions_.load()) known->forget(context);
}

void Link::stop_looking() {
  if (Completions* const known = completions_.load()) known->stop();
}

void Link::leave() {
  constexpr std::chrono::milliseconds kPatience{5};
  constexpr std::chrono::microseconds kLook{100};
  left_ = true;
  if (!is_open_) return;
  // Threads at the gate are about to go on, or held, perhaps for long; the client waits for them.
  for (const auto end = steady_clock::now() + kPatience;
       users_ > 0 && steady_clock::now() < end;) {
    std::this_thread::sleep_for(kLook);
  }
  give_up_own_place(settings_.gate, id_);
}

}  // namespace bubblesim::capture::interpose
