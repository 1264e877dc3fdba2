// What the processes of a clock of turns share: who takes part, when each is due, whose turn it is.
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

/// After so long of the machine's time without anybody who can go on, the parts of the greatest
/// Turn return from wait() once, so that a controller can say so.
inline constexpr Duration kStuckPatience = std::chrono::seconds(2);

enum class PartState : std::uint32_t { kFree, kWaits, kRuns };

struct TurnPart {
  PartState state;
  Turn turn;
  std::uint32_t bell;      ///< that makes it due; 0: none
  std::uint32_t last;      ///< 1: after all others that are due then
  std::int64_t due;        ///< ns; kNever
  std::uint64_t sequence;  ///< of joining
  ProcessMark process;
  std::atomic<std::uint32_t> calls;  ///< how often it got the turn; a futex
};

/// Plain, valid when all zeros but for what set_up() writes. Methods but set_up() and those of
/// atomics need the mutex. Every step leaves a state that drop_dead() can go on from.
struct TurnTable {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint64_t identity;  ///< differs from those of other clocks of turns
  pthread_mutex_t mutex;   ///< robust, process-shared
  std::atomic<std::int64_t> now;
  std::atomic<std::uint32_t> running;  ///< into parts; kNobody
  std::atomic<std::int32_t> holder;    ///< whose process that is; 0: nobody's
  std::atomic<std::uint64_t> turns;    ///< twice how many there have been; odd: one is passed on
  std::atomic<std::uint32_t> begun;    ///< a futex
  std::atomic<std::uint32_t> bells;
  std::uint64_t sequence;
  std::int64_t stuck_since;  ///< machine's time since when nobody runs
  TurnPart parts[kMostParts];

  void set_up(std::uint64_t id) noexcept;
  /// A free part, after those of dead processes were dropped if need be; kNobody.
  [[nodiscard]] std::uint32_t find_free() noexcept;
  /// Nobody runs: the turn goes to whoever is due first, and time to that moment. Returns who.
  std::uint32_t pass_turn() noexcept;
  /// Takes the turn from a process that has ended; wakes somebody where nobody can go on. Returns
  /// who got the turn; kNobody: nothing changed.
  std::uint32_t drop_dead() noexcept;

 private:
  [[nodiscard]] std::uint32_t first_due() const noexcept;
  void give_to(std::uint32_t part) noexcept;
  void drop_process(const ProcessMark& process) noexcept;
  void wake_greatest() noexcept;
};

/// Holds the table's mutex. A process that died in it left a table that is fit for use.
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
