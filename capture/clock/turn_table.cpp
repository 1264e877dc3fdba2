#include "capture/clock/turn_table.hpp"

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "capture/clock/futex.hpp"
#include "sim/base/check.hpp"

namespace bubblesim::capture {

void TurnTable::set_up(std::uint64_t id) noexcept {
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

std::uint32_t TurnTable::find_free() noexcept {
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

std::uint32_t TurnTable::first_due() const noexcept {
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
void TurnTable::give_to(std::uint32_t part) noexcept {
  const std::uint64_t odd = turns | 1U;
  turns = odd;
  holder = part == kNobody ? 0 : parts[part].process.pid;
  running = part;
  turns = odd + 1;
}

std::uint32_t TurnTable::pass_turn() noexcept {
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

void TurnTable::drop_process(const ProcessMark& process) noexcept {
  const ProcessMark gone = process;  // it may lie in a part
  for (TurnPart& part : parts) {
    if (part.process == gone) part.state = PartState::kFree;
  }
}

void TurnTable::wake_greatest() noexcept {
  Turn greatest{};
  for (const TurnPart& part : parts) {
    if (part.state == PartState::kWaits) greatest = std::max(greatest, part.turn);
  }
  for (TurnPart& part : parts) {
    if (part.state == PartState::kWaits && part.turn == greatest) part.due = now;
  }
}

std::uint32_t TurnTable::drop_dead() noexcept {
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

TableLock::TableLock(TurnTable& table) noexcept : table_(table) {
  const int result = pthread_mutex_lock(&table.mutex);
  if (result == EOWNERDEAD) {
    pthread_mutex_consistent(&table.mutex);
  } else {
    BUBBLESIM_CHECK(result == 0, "the lock of a clock of turns");
  }
}

}  // namespace bubblesim::capture
