#include "capture/gate/gate_segment.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace bubblesim::capture {
namespace {

std::int32_t thread_number() noexcept { return static_cast<std::int32_t>(syscall(SYS_gettid)); }

/// Whether the row's thread will write no more: it has ended, or its process has.
bool is_abandoned(const GateSegment& segment, const GateRow& row, std::uint32_t client) noexcept {
  const std::uint32_t owner = row.client;
  if (owner != client) return has_ended(segment.places[owner].process);
  return syscall(SYS_tgkill, getpid(), row.thread.load(), 0) != 0 && errno == ESRCH;
}

bool try_take(GateRow& row, std::uint64_t seen, HeldRow& held) noexcept {
  const std::uint64_t own_state = GateRow::next(seen, RowState::kUsed);
  if (!row.state.compare_exchange_strong(seen, own_state)) return false;
  held = {&row, own_state};
  return true;
}

// Looks at one row once; `pressed`: takes rows of dead threads, too, which costs system calls.
bool look(GateSegment& segment, GateRow& row, std::uint32_t client, bool pressed,
          HeldRow& held) noexcept {
  const std::uint64_t seen = row.state;
  switch (GateRow::state_of(seen)) {
    case RowState::kFree: return try_take(row, seen, held);
    case RowState::kLeft: return row.is_empty() && try_take(row, seen, held);
    case RowState::kUsed:
      return pressed && row.is_empty() && is_abandoned(segment, row, client) &&
             try_take(row, seen, held);
  }
  return false;
}

/// The thread that asked is gone, or its process is about to exit and may wait for the thread: the
/// launch goes on, and the host's answer is ignored.
void let_go(GateRow& row) noexcept {
  std::uint64_t seen = row.answer;
  for (AnswerWord word = AnswerWord::unpacked(seen);
       word.answer == Answer::kAsked || word.answer == Answer::kHeld;
       word = AnswerWord::unpacked(seen)) {
    word.answer = word.answer == Answer::kHeld ? Answer::kReleased : Answer::kGo;
    if (row.answer.compare_exchange_strong(seen, word.packed())) return;
  }
}

}  // namespace

HeldRow take_row(GateSegment& segment, std::uint32_t client) noexcept {
  HeldRow held;
  for (const bool pressed : {false, true}) {
    for (std::uint32_t i = 0; i < kMostGateThreads; ++i) {
      GateRow& row = segment.rows[i];
      if (!look(segment, row, client, pressed, held)) continue;
      row.client = client;
      row.thread = thread_number();
      // The host looks at rows below this mark only.
      std::uint32_t given = segment.rows_given;
      while (given <= i && !segment.rows_given.compare_exchange_weak(given, i + 1)) {
      }
      return held;
    }
  }
  return held;
}

void give_back(const HeldRow& held) noexcept {
  std::uint64_t own_state = held.state;
  held.row->state.compare_exchange_strong(own_state, GateRow::next(own_state, RowState::kLeft));
}

void leave_place(GateSegment& segment, ClientId client) noexcept {
  for (GateRow& row : segment.rows) {
    const std::uint64_t state = row.state;
    if (GateRow::state_of(state) != RowState::kUsed || row.client != client.value) continue;
    let_go(row);
    give_back({&row, state});
  }
  PlaceState joined = PlaceState::kJoined;
  segment.places[client.index()].state.compare_exchange_strong(joined, PlaceState::kLeft);
}

bool put(GateSegment& segment, GateRow& row, GateMessage& message) noexcept {
  const std::uint64_t written = row.written.load(std::memory_order_relaxed);
  if (written - row.taken.load(std::memory_order_acquire) >= kGateRing) return false;
  message.order = segment.order.fetch_add(1, std::memory_order_relaxed);
  row.ring[written % kGateRing] = message;
  // Sequentially consistent: against host_waits, which the host sets before it looks again.
  row.written.store(written + 1, std::memory_order_seq_cst);
  return true;
}

}  // namespace bubblesim::capture
