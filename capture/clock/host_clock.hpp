// Time, and waiting, for threads of several processes that act together on one GPU.
//
// Two clocks keep this contract. WallClock is the machine's own. TurnClock is for fake devices: its
// threads, in any number of processes, take turns; time stands still while one of them runs and,
// once all of them wait, jumps to the earliest moment that any of them waits for. So a fake device
// gives the same numbers on any machine, however busy.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

/// The clock that all processes of a rig share: CLOCK_MONOTONIC, or a fake device's.
struct RigClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<RigClock, Duration>;
  static constexpr bool is_steady = true;
};
using HostTime = RigClock::time_point;

/// Threads wait for its rings. Lives in memory that they share; only a HostClock changes it.
struct Bell {
  std::atomic<std::uint32_t> rings{0};
  std::uint32_t id = 0;  ///< HostClock::bell_id(); written before any wait
  std::atomic<std::uint32_t> sleepers{0};  ///< WallClock: threads to be woken; never too few
};

/// Order of threads that are due at one moment of a TurnClock: the smaller first.
enum class Turn : std::uint32_t {
  kDevice = 0,
  kPolicy = 10,
  kTraining = 20,  ///< threads of one job: in the order of their numbers
  kFiller = 30,
  kControl = 40,   ///< the thread that starts and stops the others
};

/// The participant that has the turn. If two reads are equal, the turn did not change between them.
struct TurnHolder {
  std::int32_t pid = 0;     ///< 0: no participant has the turn, or a WallClock
  std::uint64_t turns = 0;  ///< turns given so far, this one included
  friend bool operator==(const TurnHolder&, const TurnHolder&) = default;
};

/// A thread's part in a clock; it ends with the object, in the thread that began it.
class ClockPart {
 public:
  virtual ~ClockPart() = default;
};

class HostClock {
 public:
  virtual ~HostClock() = default;

  [[nodiscard]] virtual HostTime now() const = 0;

  /// Makes the calling thread a participant until the returned object dies; once a thread. It must
  /// come before any method below. Blocks until the thread has the turn.
  [[nodiscard]] virtual std::unique_ptr<ClockPart> join(Turn turn) = 0;

  /// Returns at once if `until` has passed.
  virtual void sleep_until(HostTime until) = 0;

  /// Returns when `bell` has been rung since it had `seen` rings, or at `deadline`; may return
  /// earlier, so callers look again at what they wait for. With a deadline that has passed, a
  /// TurnClock first runs all other threads that are due now (they may ring the bell).
  virtual void wait(Bell& bell, std::uint32_t seen, HostTime deadline) = 0;

  /// Spins before a wait, until `there` is true, for as long as this clock spins, at most to
  /// `deadline`; returns whether `there` is true. A ring costs the ringer cache misses or a system
  /// call; a waiter that still spins needs none. A TurnClock does not spin: nothing changes during
  /// a turn.
  virtual bool look(HostTime /*deadline*/, const std::function<bool()>& /*there*/) {
    return false;
  }
  /// wait() of a thread that has looked. It returns early enough to look again before `deadline`.
  virtual void sleep(Bell& bell, std::uint32_t seen, HostTime deadline) {
    wait(bell, seen, deadline);
  }

  /// Wakes every thread that waits for the bell.
  virtual void ring(Bell& bell) = 0;

  /// A number for a bell, unique among all bells of the same rig.
  [[nodiscard]] virtual std::uint32_t bell_id() = 0;

  /// Number of threads that ever joined. WallClock: 0.
  [[nodiscard]] virtual std::uint32_t parts_begun() const = 0;

  /// Called by the thread that starts a process of the rig or a thread of its own process: the
  /// caller keeps its turn until `parts` participants in all have joined. Gives up after `patience`
  /// of the machine's own time and returns false. A WallClock returns true at once.
  [[nodiscard]] virtual bool await_parts(std::uint32_t parts, Duration patience) = 0;

  /// The participant that has a TurnClock's turn. Any thread may call this and gets the answer at
  /// once, even if all others are stopped.
  [[nodiscard]] virtual TurnHolder holder() const = 0;

  /// What another process passes to open_clock() to share this clock.
  [[nodiscard]] virtual std::string address() const = 0;
};

// Makes and opens clocks by address.

inline constexpr Duration kDefaultSpin = std::chrono::microseconds(50);

/// CLOCK_MONOTONIC. Waits shorter than `spin` poll instead of sleeping: a futex wakes some 50 us
/// late.
[[nodiscard]] std::unique_ptr<HostClock> wall_clock(Duration spin = kDefaultSpin);

/// The clock of "wall", or of "wall:SPIN" (in nanoseconds); null for any other address.
[[nodiscard]] std::unique_ptr<HostClock> wall_clock_at(const std::string& address);

/// A new TurnClock that starts at zero; the object owns its shared memory. A participant whose
/// process has died loses its turn. If all wait for bells without deadline, those of the greatest
/// Turn return from wait() once every 2 s of the machine's time.
[[nodiscard]] Result<std::unique_ptr<HostClock>> make_turn_clock();

/// The clock that HostClock::address() names: "wall", "wall:SPIN", or "turns:NAME".
[[nodiscard]] Result<std::unique_ptr<HostClock>> open_clock(const std::string& address);

}  // namespace bubblesim::capture
