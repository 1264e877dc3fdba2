// Finds out when launches have ended: an event behind each, and a thread that queries events.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "capture/live/interpose/gate_seam.hpp"

namespace bubblesim::capture::interpose {

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

  explicit Completions(Tell tell);
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  /// Called after the launch, in its thread. `info.launch` is its number. A launch that the driver
  /// `refused` counts as ended.
  void follow(const SeenLaunch& launch, bool refused);
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
                     const std::function<void()>& idle);
  /// Every launch followed in this context (null: in all) counts as ended; its events are not
  /// queried any more. Waits for a look under way.
  void forget(Handle context);
  /// From here on the driver is asked nothing, every launch counts as ended, and no thread waits.
  /// Called at the process's exit, when the driver goes away. Waits 100 ms at most for a look under
  /// way.
  void stop();

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

  [[nodiscard]] Event take_event();
  [[nodiscard]] CuResult query(const Event& event, std::uint64_t forgotten);
  [[nodiscard]] bool put_event(const SeenLaunch& launch, Event& event);
  [[nodiscard]] bool is_stopped();
  [[nodiscard]] StreamKey key_of(const SeenLaunch& launch) const;
  /// Queries events. Returns whether any launch had ended.
  bool look();
  /// `reusable`: the event may be used again, if no context was forgotten since.
  void take_away(const Head& head, bool reusable, std::uint64_t forgotten);
  /// Whether events that were seen at this count of forgotten_ may still be queried.
  [[nodiscard]] bool is_valid(std::uint64_t forgotten);
  /// Waits for a launch to follow. False: stopped.
  bool may_look();
  void run();

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

}  // namespace bubblesim::capture::interpose
