// Time in turns: one thread of all processes runs, and time moves when all wait.
#include <unistd.h>

#include <array>
#include <random>

#include "capture/clock/futex.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/clock/shared_segment.hpp"
#include "capture/clock/turn_table.hpp"
#include "sim/base/check.hpp"

namespace bubblesim::capture {
namespace {

constexpr std::string_view kScheme = "turns:";
/// How often a waiting thread checks that the running process still lives.
constexpr Duration kLookEvery = std::chrono::milliseconds(20);

/// A thread's place in a clock of turns.
struct Seat {
  std::uint64_t clock = 0;  ///< TurnTable::identity; 0: no seat
  std::uint32_t part = 0;
  pid_t process = 0;  ///< a forked child inherits the seat, but not the part
};

/// The seat of the calling thread; it may take part in a few clocks.
Seat* find_seat(std::uint64_t clock) {
  thread_local std::array<Seat, 4> seats{};
  for (Seat& seat : seats) {
    if (seat.clock != 0 && seat.process != getpid()) seat = {};
    if (seat.clock == clock) return &seat;
  }
  return nullptr;
}

class TurnPartOwner final : public ClockPart {
 public:
  explicit TurnPartOwner(TurnTable& table) : table_(table) {}
  ~TurnPartOwner() override {
    Seat* seat = find_seat(table_.identity);
    // A forked child has no part to end.
    if (seat == nullptr) return;
    std::uint32_t next = kNobody;
    {
      const TableLock lock(table_);
      table_.parts[seat->part].state = PartState::kFree;
      next = table_.pass_turn();
    }
    *seat = {};
    if (next != kNobody) futex_wake(table_.parts[next].calls);
  }

 private:
  TurnTable& table_;
};

class TurnClock final : public HostClock {
 public:
  explicit TurnClock(std::unique_ptr<SharedSegment> segment)
      : segment_(std::move(segment)), table_(*static_cast<TurnTable*>(segment_->address())) {}

  HostTime now() const override { return HostTime{Duration{table_.now.load()}}; }

  std::unique_ptr<ClockPart> join(Turn turn) override {
    BUBBLESIM_CHECK(find_seat(table_.identity) == nullptr, "a thread joined its clock twice");
    Seat* seat = find_seat(0);
    BUBBLESIM_CHECK(seat != nullptr, "a thread takes part in too many clocks");
    *seat = {table_.identity, take_part(turn), getpid()};
    await_turn(seat->part);
    return std::make_unique<TurnPartOwner>(table_);
  }

  void sleep_until(HostTime until) override {
    const std::uint32_t part = my_part();
    while (now() < until) give_turn(part, to_ns(until), 0, false);
  }

  void wait(Bell& bell, std::uint32_t seen, HostTime deadline) override {
    const std::uint32_t part = my_part();
    if (bell.rings.load() != seen) return;
    BUBBLESIM_CHECK(bell.id != 0, "a bell without a number");
    give_turn(part, std::max(to_ns(deadline), table_.now.load()), bell.id, deadline <= now());
  }

  void ring(Bell& bell) override {
    my_part();
    bell.rings.fetch_add(1);
    const TableLock lock(table_);
    for (TurnPart& part : table_.parts) {
      if (part.state != PartState::kWaits || part.bell != bell.id || bell.id == 0) continue;
      part.due = table_.now;
      part.last = 0;
    }
  }

  std::uint32_t bell_id() override { return table_.bells.fetch_add(1) + 1; }
  std::uint32_t parts_begun() const override { return table_.begun.load(); }

  bool await_parts(std::uint32_t parts, Duration patience) override {
    const HostTime deadline = machine_now() + patience;
    for (std::uint32_t begun = table_.begun; begun < parts; begun = table_.begun) {
      if (machine_now() >= deadline) return false;
      futex_wait(table_.begun, begun, deadline);
    }
    return true;
  }

  TurnHolder holder() const override {
    const std::uint64_t turns = table_.turns;
    const std::int32_t pid = table_.holder;
    // Odd, or changed since: the turn is being passed on, so no thread has it.
    if (turns % 2 != 0 || turns != table_.turns) return {};
    return {pid, turns / 2};
  }

  std::string address() const override { return std::string(kScheme) + segment_->name(); }

 private:
  std::uint32_t my_part() const {
    const Seat* seat = find_seat(table_.identity);
    BUBBLESIM_CHECK(seat != nullptr, "a thread that does not take part in its clock");
    return seat->part;
  }

  std::uint32_t take_part(Turn turn) {
    std::uint32_t next = kNobody;
    std::uint32_t own_part = kNobody;
    const ProcessMark process = this_process();
    {
      const TableLock lock(table_);
      own_part = table_.find_free();
      BUBBLESIM_CHECK(own_part != kNobody, "too many threads in a clock of turns");
      TurnPart& part = table_.parts[own_part];
      part.turn = turn;
      part.bell = part.last = 0;
      part.due = table_.now;
      part.sequence = table_.sequence++;
      part.process = process;
      part.state = PartState::kWaits;
      table_.begun.fetch_add(1);
      if (table_.running == kNobody) next = table_.pass_turn();
    }
    futex_wake(table_.begun);
    if (next != kNobody) futex_wake(table_.parts[next].calls);
    return own_part;
  }

  void give_turn(std::uint32_t own_part, std::int64_t due, std::uint32_t bell, bool last) {
    std::uint32_t next = kNobody;
    {
      const TableLock lock(table_);
      TurnPart& part = table_.parts[own_part];
      part.due = due;
      part.bell = bell;
      part.last = last ? 1 : 0;
      part.state = PartState::kWaits;
      next = table_.pass_turn();
    }
    if (next == own_part) return;
    if (next != kNobody) futex_wake(table_.parts[next].calls);
    await_turn(own_part);
  }

  void await_turn(std::uint32_t own_part) {
    TurnPart& part = table_.parts[own_part];
    while (true) {
      const std::uint32_t calls = part.calls.load();
      if (table_.running.load() == own_part) return;
      const HostTime look = machine_now() + kLookEvery;
      futex_wait(part.calls, calls, look);
      if (machine_now() >= look) look_after_others();
    }
  }

  void look_after_others() {
    std::uint32_t next = kNobody;
    {
      const TableLock lock(table_);
      next = table_.drop_dead();
    }
    if (next != kNobody) futex_wake(table_.parts[next].calls);
  }

  std::unique_ptr<SharedSegment> segment_;
  TurnTable& table_;
};

}  // namespace

Result<std::unique_ptr<HostClock>> make_turn_clock() {
  BUBBLESIM_ASSIGN_OR_RETURN(auto segment,
                             SharedSegment::make("bubblesim.turns", sizeof(TurnTable)));
  std::random_device random;
  const std::uint64_t identity = (std::uint64_t{random()} << 32U | random()) | 1U;
  static_cast<TurnTable*>(segment->address())->set_up(identity);
  return std::make_unique<TurnClock>(std::move(segment));
}

Result<std::unique_ptr<HostClock>> open_clock(const std::string& address) {
  if (auto wall = wall_clock_at(address)) return wall;
  if (!address.starts_with(kScheme)) {
    return fail("\"" + address +
                "\" is no clock; expected \"wall\", \"wall:NANOSECONDS\" or \"turns:NAME\"");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(auto segment,
                             SharedSegment::open(address.substr(kScheme.size()), sizeof(TurnTable),
                                                 "clock of turns"));
  const auto& table = *static_cast<const TurnTable*>(segment->address());
  if (table.magic != kTurnMagic || table.version != kTurnVersion) {
    return fail("\"" + address + "\" is no clock of turns of this version");
  }
  return std::make_unique<TurnClock>(std::move(segment));
}

}  // namespace bubblesim::capture
