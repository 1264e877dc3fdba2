#include "capture/gate/gate_board.hpp"

#include <tuple>

namespace bubblesim::capture {
namespace {

std::uint64_t total_of(const GateSegment& segment, std::atomic<std::uint64_t> GatePlace::*count) {
  std::uint64_t total = 0;
  for (const GatePlace& place : segment.places) total += place.*count;
  return total;
}

}  // namespace

GateBoard::GateBoard(HostClock& clock, std::unique_ptr<SharedSegment> memory)
    : clock_(clock),
      memory_(std::move(memory)),
      segment_(*static_cast<GateSegment*>(memory_->address())) {}

// No bell is rung: this thread may not take part in the clock. Waiting threads look by themselves.
GateBoard::~GateBoard() { segment_.open = 1; }

Result<std::unique_ptr<GateBoard>> GateBoard::make(HostClock& clock, std::uint32_t clients) {
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

void GateBoard::set_up(std::uint32_t clients) {
  segment_.clients = clients;
  segment_.host = this_process();
  segment_.host_bell.id = clock_.bell_id();
  for (GateRow& row : segment_.rows) row.bell.id = clock_.bell_id();
  segment_.heartbeat = to_ns(clock_.now());
  segment_.version = kGateVersion;
  segment_.magic = kGateMagic;
}

void GateBoard::set_mode(ClientId client, GateMode mode) {
  segment_.places[client.index()].mode = mode;
}

void GateBoard::set_window(ClientId client, std::uint32_t launches) {
  segment_.places[client.index()].window = launches;
}

void GateBoard::free_if_left(GateRow& row) {
  std::uint64_t seen = row.state;
  if (GateRow::state_of(seen) != RowState::kLeft || !row.is_empty()) return;
  row.state.compare_exchange_strong(seen, GateRow::next(seen, RowState::kFree));
}

std::optional<std::uint32_t> GateBoard::earliest_row() {
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
    if (first != nullptr && std::tie(first->time, first->order) <=
                                std::tie(message.time, message.order)) {
      continue;
    }
    first = &message;
    from = i;
  }
  return first == nullptr ? std::nullopt : std::optional(from);
}

// A look at all rows takes time: during it a launch may be told in a row that was already looked
// at, and its completion in a later row. A second look finds the messages before the one that the
// first look found.
std::optional<GateEvent> GateBoard::take() {
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

bool GateBoard::answer(GateTicket ticket, Answer from, Answer to) {
  std::uint64_t expected = AnswerWord{ticket.ask, from}.packed();
  return segment_.rows[ticket.row].answer.compare_exchange_strong(
      expected, AnswerWord{ticket.ask, to}.packed());
}

bool GateBoard::hold(GateTicket ticket) { return answer(ticket, Answer::kAsked, Answer::kHeld); }

bool GateBoard::let_go(GateTicket ticket) {
  if (!answer(ticket, Answer::kAsked, Answer::kGo) &&
      !answer(ticket, Answer::kHeld, Answer::kReleased)) {
    return false;
  }
  clock_.ring(segment_.rows[ticket.row].bell);
  return true;
}

void GateBoard::beat(HostTime now) { segment_.heartbeat = to_ns(now); }

bool GateBoard::has_messages() const {
  for (std::uint32_t i = 0; i < segment_.rows_given; ++i) {
    const GateRow& row = segment_.rows[i];
    if (row.written.load(std::memory_order_seq_cst) != row.taken.load(std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void GateBoard::wait(std::uint32_t knocks, HostTime deadline) {
  const auto there = [&] { return has_messages() || this->knocks() != knocks; };
  if (clock_.look(deadline, there)) return;
  segment_.host_waits.store(1, std::memory_order_seq_cst);
  // A client that writes after this look sees the mark.
  if (!has_messages()) clock_.sleep(segment_.host_bell, knocks, deadline);
  segment_.host_waits.store(0, std::memory_order_seq_cst);
}

void GateBoard::knock() { clock_.ring(segment_.host_bell); }

void GateBoard::open() {
  segment_.open = 1;
  for (std::uint32_t i = 0; i < segment_.rows_given; ++i) {
    GateRow& row = segment_.rows[i];
    const Answer answer = AnswerWord::unpacked(row.answer).answer;
    if (answer == Answer::kAsked || answer == Answer::kHeld) clock_.ring(row.bell);
  }
}

std::uint64_t GateBoard::ended_through(ClientId client) const {
  const GatePlace& place = segment_.places[client.index()];
  const std::uint64_t launches = place.launches;  // first: a successor's launches come later
  const PlaceState state = place.state;
  const bool lives = state == PlaceState::kTaken ||
                     (state == PlaceState::kJoined && !has_ended(place.process));
  return lives ? place.before.load() : launches;
}

void GateBoard::mark_gone(ClientId client) {
  segment_.places[client.index()].state = PlaceState::kGone;
}

Duration GateBoard::shortest_patience() const { return Duration{segment_.shortest_patience}; }

std::uint64_t GateBoard::messages_dropped() const {
  return total_of(segment_, &GatePlace::dropped);
}

std::uint64_t GateBoard::launches_ungated() const {
  return total_of(segment_, &GatePlace::ungated);
}

std::uint64_t GateBoard::launches_passed() const { return total_of(segment_, &GatePlace::passed); }

}  // namespace bubblesim::capture
