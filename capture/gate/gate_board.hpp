// The host's side of a gate: its memory, its clients' messages, and the answers.
//
// One thread takes messages and answers them; open(), knock() and mark_gone() may come from any
// thread that takes part in the clock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "capture/clock/host_clock.hpp"
#include "capture/clock/shared_segment.hpp"
#include "capture/gate/gate_segment.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// A thread that waits for an answer.
struct GateTicket {
  std::uint32_t row = 0;
  std::uint32_t ask = 0;
};

struct GateEvent {
  GateMessage message;
  GateTicket ticket;  ///< of MessageKind::kAsked
};

class GateBoard {
 public:
  /// Makes places for clients 0 to `clients` - 1, at most kMostGateClients. `clock` outlives this.
  [[nodiscard]] static Result<std::unique_ptr<GateBoard>> make(HostClock& clock,
                                                               std::uint32_t clients) {
    if (clients > kMostGateClients) {
      return fail("a gate has at most " + std::to_string(kMostGateClients) + " clients, not " +
                  std::to_string(clients));
    }
    BUBBLESIM_ASSIGN_OR_RETURN(auto memory,
                               SharedSegment::make("bubblesim.gate", sizeof(GateSegment)));
    auto board = std::unique_ptr<GateBoard>(new GateBoard(clock, std::move(memory)));
    board->set_up(clients);
    return board;
  }
  /// Opens the gate and removes its name.
  /// No bell is rung: this thread may not take part in the clock. Waiting threads look by
  /// themselves.
  ~GateBoard() { segment_.open = 1; }
  GateBoard(const GateBoard&) = delete;
  GateBoard& operator=(const GateBoard&) = delete;

  [[nodiscard]] const std::string& name() const { return memory_->name(); }
  /// The gate decides about launches on all GPUs, not only on the GPU of the filler's first launch.
  void watch_all_gpus() { segment_.gpu.read_or_set({}); }
  void set_mode(ClientId client, GateMode mode) { segment_.places[client.index()].mode = mode; }
  void set_window(ClientId client, std::uint32_t launches) {
    segment_.places[client.index()].window = launches;
  }

  /// The waiting message that was sent first; by number among messages of one time.
  /// A look at all rows takes time: during it a launch may be told in a row that was already looked
  /// at, and its completion in a later row. A second look finds the messages before the one that
  /// the first look found.
  [[nodiscard]] std::optional<GateEvent> take() {
    std::optional<std::uint32_t> from = earliest_row();
    for (auto again = from ? earliest_row() : from; again != from; again = earliest_row()) {
      from = again;
    }
    if (!from) return std::nullopt;
    GateRow& row = segment_.rows[*from];
    const GateMessage& message = row.ring[row.taken.load(std::memory_order_relaxed) % kGateRing];
    const GateEvent event{message, {*from, message.ask}};
    row.taken.fetch_add(1, std::memory_order_release);
    return event;
  }

  /// Tells the thread to wait. False: it has given up.
  bool hold(GateTicket ticket) { return answer(ticket, Answer::kAsked, Answer::kHeld); }
  /// Lets the thread go on, held or not. False: it has given up.
  bool let_go(GateTicket ticket) {
    if (!answer(ticket, Answer::kAsked, Answer::kGo) &&
        !answer(ticket, Answer::kHeld, Answer::kReleased)) {
      return false;
    }
    clock_.ring(segment_.rows[ticket.row].bell);
    return true;
  }

  /// Writes the heartbeat: the host is alive at this time.
  void beat(HostTime now) { segment_.heartbeat = to_ns(now); }
  /// Number of knocks so far. Read it before looking for the change that a knock announces.
  [[nodiscard]] std::uint32_t knocks() const { return segment_.host_bell.rings; }
  /// Returns on a message, after more than `knocks` knocks, or at `deadline`; maybe earlier.
  void wait(std::uint32_t knocks, HostTime deadline) {
    const auto there = [&] { return has_messages() || this->knocks() != knocks; };
    if (clock_.look(deadline, there)) return;
    segment_.host_waits.store(1, std::memory_order_seq_cst);
    // A client that writes after this look sees the mark.
    if (!has_messages()) clock_.sleep(segment_.host_bell, knocks, deadline);
    segment_.host_waits.store(0, std::memory_order_seq_cst);
  }
  void knock() { clock_.ring(segment_.host_bell); }

  /// Opens the gate for good: no launch is held or asks any more.
  void open() {
    segment_.open = 1;
    for (std::uint32_t i = 0; i < segment_.rows_given; ++i) {
      GateRow& row = segment_.rows[i];
      const Answer answer = AnswerWord::unpacked(row.answer).answer;
      if (answer == Answer::kAsked || answer == Answer::kHeld) clock_.ring(row.bell);
    }
  }
  [[nodiscard]] bool is_open() const { return segment_.open != 0; }

  /// Launches up to this number came from processes that have ended or left the client's place:
  /// none is on the device any more, and another process may take the place.
  [[nodiscard]] std::uint64_t ended_through(ClientId client) const {
    const GatePlace& place = segment_.places[client.index()];
    const std::uint64_t launches = place.launches;  // first: a successor's launches come later
    const PlaceState state = place.state;
    const bool lives =
        state == PlaceState::kTaken || (state == PlaceState::kJoined && !has_ended(place.process));
    return lives ? place.before.load() : launches;
  }
  /// Lets no further process join as this client. Messages that were sent can still be taken.
  void mark_gone(ClientId client) { segment_.places[client.index()].state = PlaceState::kGone; }

  /// The least patience of a client: it takes a host that is silent for longer for dead. 0: no
  /// client.
  [[nodiscard]] Duration shortest_patience() const { return Duration{segment_.shortest_patience}; }
  [[nodiscard]] std::uint64_t messages_dropped() const { return total_of(&GatePlace::dropped); }
  [[nodiscard]] std::uint64_t launches_ungated() const { return total_of(&GatePlace::ungated); }
  /// In GateMode::kPass.
  [[nodiscard]] std::uint64_t launches_passed() const { return total_of(&GatePlace::passed); }

 private:
  [[nodiscard]] std::uint64_t total_of(std::atomic<std::uint64_t> GatePlace::*count) const {
    std::uint64_t total = 0;
    for (const GatePlace& place : segment_.places) total += place.*count;
    return total;
  }
  GateBoard(HostClock& clock, std::unique_ptr<SharedSegment> memory)
      : clock_(clock),
        memory_(std::move(memory)),
        segment_(*static_cast<GateSegment*>(memory_->address())) {}
  void set_up(std::uint32_t clients) {
    segment_.clients = clients;
    segment_.host = this_process();
    segment_.host_bell.id = clock_.bell_id();
    for (GateRow& row : segment_.rows) row.bell.id = clock_.bell_id();
    segment_.heartbeat = to_ns(clock_.now());
    segment_.version = kGateVersion;
    segment_.magic = kGateMagic;
  }
  [[nodiscard]] bool has_messages() const {
    for (std::uint32_t i = 0; i < segment_.rows_given; ++i) {
      const GateRow& row = segment_.rows[i];
      if (row.written.load(std::memory_order_seq_cst) !=
          row.taken.load(std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  /// The row with the earliest message seen in one look at all rows.
  [[nodiscard]] std::optional<std::uint32_t> earliest_row() {
    const GateMessage* first = nullptr;
    std::uint32_t from = 0;
    for (std::uint32_t i = 0; i < segment_.rows_given; ++i) {
      GateRow& row = segment_.rows[i];
      const std::uint64_t taken = row.taken.load(std::memory_order_relaxed);
      if (row.written.load(std::memory_order_acquire) == taken) {
        free_if_left(row);
        continue;
      }
      const GateMessage& message = row.ring[taken % kGateRing];
      if (first != nullptr &&
          std::tie(first->time, first->order) <= std::tie(message.time, message.order)) {
        continue;
      }
      first = &message;
      from = i;
    }
    return first == nullptr ? std::nullopt : std::optional(from);
  }
  void free_if_left(GateRow& row) {
    std::uint64_t seen = row.state;
    if (GateRow::state_of(seen) != RowState::kLeft || !row.is_empty()) return;
    row.state.compare_exchange_strong(seen, GateRow::next(seen, RowState::kFree));
  }
  bool answer(GateTicket ticket, Answer from, Answer to) {
    std::uint64_t expected = AnswerWord{ticket.ask, from}.packed();
    return segment_.rows[ticket.row].answer.compare_exchange_strong(
        expected, AnswerWord{ticket.ask, to}.packed());
  }

  HostClock& clock_;
  std::unique_ptr<SharedSegment> memory_;
  GateSegment& segment_;
};

}  // namespace bubblesim::capture
