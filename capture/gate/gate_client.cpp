#include "capture/gate/gate_client.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "capture/clock/shared_segment.hpp"
#include "capture/gate/gate_segment.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {
namespace {

// ---- A process's place at a gate, and the row of each thread.

/// A thread's row and counts at one gate.
struct GateSeat {
  HeldRow held;                   ///< none: all rows are in use
  std::uint64_t last_launch = 0;  ///< its number
};

/// Forks between the first process that joined a gate and this one.
std::atomic<std::uint64_t> forks_so_far{0};

void watch_forks() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { forks_so_far.fetch_add(1); });
  static_cast<void>(once);
}

// Makes the process the client of the place; the fault has the reason if it cannot.
Result<void> take_place(GatePlace& place, const std::string& what) {
  PlaceState seen = place.state;
  if (seen == PlaceState::kGone) return fail(what + " has ended");
  const bool taken =
      seen == PlaceState::kTaken || (seen == PlaceState::kJoined && !has_ended(place.process));
  if (taken || !place.state.compare_exchange_strong(seen, PlaceState::kTaken)) {
    return fail(what + " is process " + std::to_string(place.process.pid) +
                " already, and it lives");
  }
  place.before = place.launches.load();
  place.process = this_process();
  place.state = PlaceState::kJoined;
  return {};
}

void note_patience(GateSegment& segment, Duration patience) {
  std::int64_t shortest = segment.shortest_patience;
  while ((shortest == 0 || to_ns(patience) < shortest) &&
         !segment.shortest_patience.compare_exchange_weak(shortest, to_ns(patience))) {
  }
}

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> made{0};
  return ++made;
}

class GateMembership {
 public:
  /// Joins the gate `name`; parameters and faults are those of GateClient::open.
  [[nodiscard]] static Result<std::shared_ptr<GateMembership>> join(const std::string& name,
                                                                    ClientId client,
                                                                    Duration patience) {
    BUBBLESIM_ASSIGN_OR_RETURN(auto memory, SharedSegment::open(name, sizeof(GateSegment), "gate"));
    auto& segment = *static_cast<GateSegment*>(memory->address());
    if (segment.magic != kGateMagic || segment.version != kGateVersion) {
      return fail("\"" + name + "\" is no gate of this version");
    }
    if (client.value >= segment.clients) {
      return fail("gate \"" + name + "\" has no client " + std::to_string(client.value) +
                  ", only 0 to " + std::to_string(segment.clients - 1));
    }
    watch_forks();
    const std::string what = "client " + std::to_string(client.value) + " of gate \"" + name + "\"";
    BUBBLESIM_RETURN_IF_ERROR(take_place(segment.places[client.index()], what));
    note_patience(segment, patience);
    return std::shared_ptr<GateMembership>(new GateMembership(std::move(memory), client));
  }
  ~GateMembership() { leave(); }
  GateMembership(const GateMembership&) = delete;
  GateMembership& operator=(const GateMembership&) = delete;

  /// Gives back the place and all rows, unless this is a forked child.
  void leave() noexcept {
    if (!std::exchange(left_, true) && !is_forked()) leave_place(segment_, client_);
  }
  /// This process was forked from the one that joined.
  [[nodiscard]] bool is_forked() const noexcept {
    return forks_so_far.load(std::memory_order_relaxed) != forks_;
  }
  [[nodiscard]] GateSegment& segment() const { return segment_; }
  [[nodiscard]] GatePlace& place() const { return segment_.places[client_.index()]; }
  [[nodiscard]] ClientId client() const { return client_; }
  /// Differs from the numbers of all other memberships of the process.
  [[nodiscard]] std::uint64_t number() const { return number_; }

  /// The calling thread's seat; made at its first call, given back when the thread ends. Null: the
  /// thread already has seats at kMostGateClients gates.
  [[nodiscard]] static GateSeat* seat(const std::shared_ptr<GateMembership>& membership) noexcept;

 private:
  GateMembership(std::unique_ptr<SharedSegment> memory, ClientId client)
      : memory_(std::move(memory)),
        segment_(*static_cast<GateSegment*>(memory_->address())),
        client_(client),
        number_(next_number()),
        forks_(forks_so_far.load()) {}

  std::unique_ptr<SharedSegment> memory_;
  GateSegment& segment_;
  ClientId client_;
  std::uint64_t number_;
  std::uint64_t forks_;  ///< of this process and its ancestors, when it joined
  bool left_ = false;
};

struct ThreadSeat {
  std::uint64_t number = 0;  ///< of the membership; 0: empty
  std::weak_ptr<GateMembership> membership;
  GateSeat seat;
};

/// The calling thread's seats. Rows are given back at the thread's end, if the gate still exists.
struct ThreadSeats {
  std::array<ThreadSeat, kMostGateClients> seats;
  ~ThreadSeats() {
    for (ThreadSeat& seat : seats) {
      const auto membership = seat.membership.lock();
      if (!membership || membership->is_forked() || seat.seat.held.row == nullptr) continue;
      give_back(seat.seat.held);
    }
  }
};
thread_local ThreadSeats thread_seats;

GateSeat* sit_down(const std::shared_ptr<GateMembership>& membership) noexcept {
  for (ThreadSeat& seat : thread_seats.seats) {
    if (seat.number != 0 && !seat.membership.expired()) continue;
    seat.membership = membership;
    seat.number = membership->number();
    seat.seat = {};
    if (!membership->is_forked()) {
      seat.seat.held = take_row(membership->segment(), membership->client().value);
    }
    return &seat.seat;
  }
  return nullptr;
}

GateSeat* GateMembership::seat(const std::shared_ptr<GateMembership>& membership) noexcept {
  for (ThreadSeat& seat : thread_seats.seats) {
    if (seat.number == membership->number()) return &seat.seat;
  }
  return sit_down(membership);
}

class SegmentClient final : public GateClient {
 public:
  SegmentClient(std::shared_ptr<GateMembership> membership, HostClock& clock, Duration patience)
      : membership_(std::move(membership)),
        segment_(membership_->segment()),
        place_(membership_->place()),
        clock_(clock),
        patience_(std::max(patience, Duration{4})) {}
  ~SegmentClient() override { membership_->leave(); }

  Passage launch(policy::LaunchInfo launch) override {
    launches_.fetch_add(1, std::memory_order_relaxed);
    GateSeat* seat = GateMembership::seat(membership_);
    if (membership_->is_forked() || seat == nullptr) {
      if (seat != nullptr) seat->last_launch = launches_;
      return go_ungated();
    }
    launch.client = membership_->client();
    launch.launch = place_.launches.fetch_add(1, std::memory_order_relaxed) + 1;
    seat->last_launch = launch.launch;
    GateRow* row = seat->held.row;
    if (is_closed()) return go_ungated_here();
    const GateMode mode = place_.mode.load(std::memory_order_relaxed);
    if (mode == GateMode::kPass) {
      place_.passed.fetch_add(1, std::memory_order_relaxed);
      return {};
    }
    if (row == nullptr) return go_ungated_here();
    GateMessage message = message_of(MessageKind::kTold);
    message.launch = launch;
    if (mode == GateMode::kTell) {
      send(*row, message);
      return {};
    }
    if (is_known_silent()) {
      message.kind = MessageKind::kUngated;
      send(*row, message);
      return go_ungated_here();
    }
    return ask(*row, message);
  }

  std::uint64_t last_launch() const override {
    const GateSeat* seat = GateMembership::seat(membership_);
    return seat == nullptr ? 0 : seat->last_launch;
  }

  void completed(program::WorkKind kind, std::uint64_t launch,
                 std::uint32_t operations) override {
    GateMessage message = message_of(MessageKind::kCompleted);
    message.launch.kind = kind;
    message.launch.launch = launch;
    message.launch.operations = operations;
    tell(message);
  }
  bool has_room() const override {
    const GateSeat* seat = GateMembership::seat(membership_);
    if (is_closed() || membership_->is_forked() || seat == nullptr) return true;
    const GateRow* row = seat->held.row;
    return row == nullptr || row->written.load() - row->taken.load() < kGateRing;
  }
  void iteration_ended(Duration length) override {
    GateMessage message = message_of(MessageKind::kIteration);
    message.length = length;
    tell(message);
  }
  void bubble_began(const policy::BubbleInfo& bubble) override {
    GateMessage message = message_of(MessageKind::kBubbleBegan);
    message.bubble = bubble;
    tell(message);
  }
  void bubble_ended() override {
    GateMessage message = message_of(MessageKind::kBubbleEnded);
    tell(message);
  }

  std::uint32_t window() const override { return is_closed() ? 0 : place_.window.load(); }
  void look_for_host() override {
    if (has_ended(segment_.host)) segment_.open = 1;
  }
  GateClientCounts counts() const override { return {launches_, ungated_, dropped_}; }

 private:
  [[nodiscard]] bool is_closed() const {
    return segment_.open.load(std::memory_order_acquire) != 0 ||
           place_.state.load(std::memory_order_relaxed) == PlaceState::kGone;
  }

  [[nodiscard]] GateMessage message_of(MessageKind kind) const {
    GateMessage message;
    message.kind = kind;
    message.launch.client = membership_->client();
    message.time = clock_.now();
    return message;
  }

  void tell(GateMessage& message) {
    if (membership_->is_forked() || is_closed()) return;
    const GateSeat* seat = GateMembership::seat(membership_);
    if (seat == nullptr || seat->held.row == nullptr) {
      drop();
      return;
    }
    send(*seat->held.row, message);
  }

  bool send(GateRow& row, GateMessage& message) {
    if (!put(segment_, row, message)) {
      drop();
      return false;
    }
    // Only the thread that clears the mark rings: one ring for all messages of one time.
    if (segment_.host_waits.load(std::memory_order_seq_cst) != 0 &&
        segment_.host_waits.exchange(0) != 0) {
      clock_.ring(segment_.host_bell);
    }
    return true;
  }

  void drop() {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    place_.dropped.fetch_add(1, std::memory_order_relaxed);
  }

  Passage go_ungated() {
    ungated_.fetch_add(1, std::memory_order_relaxed);
    return {Duration{}, false, true};
  }
  Passage go_ungated_here() {
    place_.ungated.fetch_add(1, std::memory_order_relaxed);
    return go_ungated();
  }

  Passage ask(GateRow& row, GateMessage& message) {
    message.kind = MessageKind::kAsked;
    message.ask = AnswerWord::unpacked(row.answer).ask + 1;
    row.answer = AnswerWord{message.ask, Answer::kAsked}.packed();
    if (!send(row, message)) return go_ungated_here();
    Passage passage;
    while (true) {
      const std::uint32_t seen = row.bell.rings;
      std::uint64_t word = row.answer.load(std::memory_order_acquire);
      const Answer answer = AnswerWord::unpacked(word).answer;
      passage.held = answer == Answer::kReleased;
      if (answer == Answer::kGo || answer == Answer::kReleased) break;
      if (is_closed() || is_silent(message.time)) {
        const std::uint64_t withdrawn = AnswerWord{message.ask, Answer::kWithdrawn}.packed();
        if (!row.answer.compare_exchange_strong(word, withdrawn)) continue;  // answered just now
        passage = go_ungated_here();
        passage.held = answer == Answer::kHeld;
        break;
      }
      clock_.wait(row.bell, seen, clock_.now() + patience_ / 4);
    }
    passage.asked = clock_.now() - message.time;
    return passage;
  }

  // The host has not looked since it was found silent.
  [[nodiscard]] bool is_known_silent() const {
    return segment_.heartbeat.load(std::memory_order_relaxed) ==
           silent_since_.load(std::memory_order_relaxed);
  }

  // The host has died, or has not looked for longer than `patience`.
  [[nodiscard]] bool is_silent(HostTime asked) {
    const HostTime now = clock_.now();
    if (now == asked) return false;
    const std::int64_t beat = segment_.heartbeat.load();
    if (now - std::max(asked, HostTime{Duration{beat}}) >= patience_) {
      silent_since_ = beat;
      return true;
    }
    if (now - asked < patience_ / 4 || !has_ended(segment_.host)) return false;
    segment_.open = 1;  // for all threads: the host will decide nothing more
    return true;
  }

  std::shared_ptr<GateMembership> membership_;
  GateSegment& segment_;
  GatePlace& place_;
  HostClock& clock_;
  Duration patience_;
  std::atomic<std::uint64_t> launches_{0};
  std::atomic<std::uint64_t> ungated_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::int64_t> silent_since_{-1};  ///< the heartbeat at which it was; -1: never
};

}  // namespace

Result<std::unique_ptr<GateClient>> GateClient::open(const std::string& name, ClientId client,
                                                     HostClock& clock, Duration patience) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto membership, GateMembership::join(name, client, patience));
  return std::make_unique<SegmentClient>(std::move(membership), clock, patience);
}

}  // namespace bubblesim::capture
