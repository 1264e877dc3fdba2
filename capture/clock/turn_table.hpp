// The state that the processes of a TurnClock share: parts (threads), their due times, the turn.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <tuple>

#include "capture/clock/futex.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/clock/process_mark.hpp"
#include "sim/base/check.hpp"

namespace bubblesim::capture {

inline constexpr std::uint64_t kTurnMagic = 0x62627473'7475726eULL;
inline constexpr std::uint32_t kTurnVersion = 2;
inline constexpr std::uint32_t kMostParts = 128;
inline constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// If no part can run for this long (machine's time), the parts of the greatest Turn return from
/// wait() once, so that a controller can report it.
inline constexpr Duration kStuckPatience = std::chrono::seconds(2);

enum class PartState : std::uint32_t { kFree, kWaits, kRuns };

struct TurnPart {
  PartState state;
  Turn turn;
  std::uint32_t bell;      ///< the bell that makes it due; 0: none
  std::uint32_t last;      ///< 1: runs after all other parts due at that time
  std::int64_t due;        ///< ns, or kNever
  std::uint64_t sequence;  ///< place in the order of joining
  ProcessMark process;
  std::atomic<std::uint32_t> calls;  ///< how often it got the turn; a futex
};

/// Plain data, valid when all zeros once set_up() has run. All methods but set_up() need the mutex;
/// atomics do not. drop_dead() also works on a table that a dead process left half changed.
struct TurnTable {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint64_t identity;  ///< unique among clocks of turns
  pthread_mutex_t mutex;   ///< robust, process-shared
  std::atomic<std::int64_t> now;
  std::atomic<std::uint32_t> running;  ///< index into parts, or kNobody
  std::atomic<std::int32_t> holder;    ///< pid of the running part; 0: none runs
  std::atomic<std::uint64_t> turns;    ///< twice the turns so far; odd: one is being passed on
  std::atomic<std::uint32_t> begun;    ///< a futex
  std::atomic<std::uint32_t> bells;
  std::uint64_t sequence;
  std::int64_t stuck_since;  ///< machine's time, ns, from which on no part could run
  TurnPart parts[kMostParts];

  void set_up(std::uint64_t id) noexcept {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &kind);
    pthread_mutexattr_destroy(&kind);
    running = kNobody;
    identity = id;
    version = kTurnVersion;
    magic = kTurnMagic;
  }
  /// A free part, after dropping those of dead processes if need be; kNobody: none.
  [[nodiscard]] std::uint32_t find_free() noexcept {
    for (int tries = 0; tries < 2; ++tries) {
      for (std::uint32_t i = 0; i < kMostParts; ++i) {
        if (parts[i].state == PartState::kFree) return i;
      }
      for (const TurnPart& part : parts) {
        if (part.state == PartState::kWaits && has_ended(part.process)) drop_process(part.process);
      }
    }
    return kNobody;
  }
  /// While no part runs: gives the turn to the part due first, moves time there; returns the part.
  std::uint32_t pass_turn() noexcept {
    const std::uint32_t next = first_due();
    if (next == kNobody) {
      stuck_since = to_ns(machine_now());
      give_to(kNobody);
      return kNobody;
    }
    TurnPart& part = parts[next];
    part.state = PartState::kRuns;
    part.bell = 0;
    part.last = 0;
    now = std::max(now.load(), part.due);
    give_to(next);
    part.calls.fetch_add(1);
    return next;
  }
  /// Takes the turn from a process that has ended; wakes the parts of the greatest Turn if none can
  /// run. Returns the part that got the turn; kNobody: nothing changed.
  std::uint32_t drop_dead() noexcept {
    const std::uint32_t part = running;
    if (part != kNobody) {
      if (!has_ended(parts[part].process)) return kNobody;
      drop_process(parts[part].process);
      return pass_turn();
    }
    if (to_ns(machine_now()) - stuck_since < to_ns(kStuckPatience)) return kNobody;
    wake_greatest();
    return pass_turn();
  }

 private:
  [[nodiscard]] std::uint32_t first_due() const noexcept {
    const auto key = [this](std::uint32_t i) {
      const TurnPart& part = parts[i];
      return std::tuple(std::max(part.due, now.load()), part.last, part.turn, part.sequence);
    };
    std::uint32_t first = kNobody;
    for (std::uint32_t i = 0; i < kMostParts; ++i) {
      if (parts[i].state != PartState::kWaits || parts[i].due == kNever) continue;
      if (first == kNobody || key(i) < key(first)) first = i;
    }
    return first;
  }
  // Other processes read `turns` without the mutex. Odd already: a process died in this function.
  void give_to(std::uint32_t part) noexcept {
    const std::uint64_t odd = turns | 1U;
    turns = odd;
    holder = part == kNobody ? 0 : parts[part].process.pid;
    running = part;
    turns = odd + 1;
  }
  void drop_process(const ProcessMark& process) noexcept {
    const ProcessMark gone = process;  // it may lie in a part
    for (TurnPart& part : parts) {
      if (part.process == gone) part.state = PartState::kFree;
    }
  }
  void wake_greatest() noexcept {
    Turn greatest{};
    for (const TurnPart& part : parts) {
      if (part.state == PartState::kWaits) greatest = std::max(greatest, part.turn);
    }
    for (TurnPart& part : parts) {
      if (part.state == PartState::kWaits && part.turn == greatest) part.due = now;
    }
  }
};

/// Holds the table's mutex. A process that died holding it left the table usable.
class TableLock {
 public:
  explicit TableLock(TurnTable& table) noexcept : table_(table) {
    const int result = pthread_mutex_lock(&table.mutex);
    if (result == EOWNERDEAD) {
      pthread_mutex_consistent(&table.mutex);
    } else {
      BUBBLESIM_CHECK(result == 0, "the lock of a clock of turns");
    }
  }
  ~TableLock() { pthread_mutex_unlock(&table_.mutex); }
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;

 private:
  TurnTable& table_;
};

}  // namespace bubblesim::capture
