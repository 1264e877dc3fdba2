// The state that the processes of a TurnClock share: parts (threads), their due times, the turn.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <limits>

#include "capture/clock/host_clock.hpp"
#include "capture/clock/process_mark.hpp"

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

  void set_up(std::uint64_t id) noexcept;
  /// A free part, after dropping those of dead processes if need be; kNobody: none.
  [[nodiscard]] std::uint32_t find_free() noexcept;
  /// While no part runs: gives the turn to the part due first, moves time there; returns the part.
  std::uint32_t pass_turn() noexcept;
  /// Takes the turn from a process that has ended; wakes the parts of the greatest Turn if none can
  /// run. Returns the part that got the turn; kNobody: nothing changed.
  std::uint32_t drop_dead() noexcept;

 private:
  [[nodiscard]] std::uint32_t first_due() const noexcept;
  void give_to(std::uint32_t part) noexcept;
  void drop_process(const ProcessMark& process) noexcept;
  void wake_greatest() noexcept;
};

/// Holds the table's mutex. A process that died holding it left the table usable.
class TableLock {
 public:
  explicit TableLock(TurnTable& table) noexcept;
  ~TableLock() { pthread_mutex_unlock(&table_.mutex); }
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;

 private:
  TurnTable& table_;
};

}  // namespace bubblesim::capture
