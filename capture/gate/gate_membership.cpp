#include "capture/gate/gate_membership.hpp"

#include <pthread.h>

#include <array>
#include <atomic>
#include <utility>

namespace bubblesim::capture {
namespace {

/// Forks between the first process that joined a gate and this one.
std::atomic<std::uint64_t> forks_so_far{0};

void watch_forks() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { forks_so_far.fetch_add(1); });
  static_cast<void>(once);
}

struct ThreadSeat {
  std::uint64_t number = 0;  ///< of the membership; 0: empty
  std::weak_ptr<GateMembership> membership;
  GateSeat seat;
};

/// The calling thread's seats. The rows go back when the thread ends, if the gate is still there.
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

// Becomes the place's process; the fault says why not.
Result<void> take_place(GatePlace& place, const std::string& what) {
  PlaceState seen = place.state;
  if (seen == PlaceState::kGone) return fail(what + " has ended");
  const bool taken = seen == PlaceState::kTaken ||
                     (seen == PlaceState::kJoined && !has_ended(place.process));
  if (taken || !place.state.compare_exchange_strong(seen, PlaceState::kTaken)) {
    return fail(what + " is process " + std::to_string(place.process.pid) +
                " already, and it lives");
  }
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

}  // namespace

GateMembership::GateMembership(std::unique_ptr<SharedSegment> memory, ClientId client)
    : memory_(std::move(memory)),
      segment_(*static_cast<GateSegment*>(memory_->address())),
      client_(client),
      number_(next_number()),
      forks_(forks_so_far.load()) {}

GateMembership::~GateMembership() { leave(); }

Result<std::shared_ptr<GateMembership>> GateMembership::join(const std::string& name,
                                                             ClientId client, Duration patience) {
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

void GateMembership::leave() noexcept {
  if (std::exchange(left_, true) || is_forked()) return;
  for (GateRow& row : segment_.rows) {
    const std::uint64_t state = row.state;
    if (GateRow::state_of(state) != RowState::kUsed || row.client != client_.value) continue;
    give_back({&row, state});
  }
  PlaceState joined = PlaceState::kJoined;
  place().state.compare_exchange_strong(joined, PlaceState::kLeft);
}

bool GateMembership::is_forked() const noexcept {
  return forks_so_far.load(std::memory_order_relaxed) != forks_;
}

GateSeat* GateMembership::seat(const std::shared_ptr<GateMembership>& membership) noexcept {
  for (ThreadSeat& seat : thread_seats.seats) {
    if (seat.number == membership->number()) return &seat.seat;
  }
  return sit_down(membership);
}

}  // namespace bubblesim::capture
