#include "capture/replay/control_segment.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <new>
#include <utility>

#include "capture/clock/process_mark.hpp"
#include "capture/clock/shared_segment.hpp"
#include "capture/gate/gate_client.hpp"
#include "sim/base/check.hpp"

namespace bubblesim::capture {
namespace {

// "bubblesim rig" as bytes, and a version: a segment with other bytes is refused.
constexpr std::uint64_t kMagic = 0x62736d2d72696732;
constexpr std::int64_t kNoStart = std::numeric_limits<std::int64_t>::min();

/// A text that one process can read while another writes it: the reader gets all of it or nothing.
class SharedText {
 public:
  void write(const std::string& text) {
    const std::size_t size = std::min(text.size(), kMost);
    version_.fetch_add(1);
    for (std::size_t i = 0; i < size; ++i) text_[i].store(text[i], std::memory_order_relaxed);
    text_[size].store('\0', std::memory_order_relaxed);
    version_.fetch_add(1);
  }

  // A writer that died while writing leaves an unfinished text.
  [[nodiscard]] std::string read() const {
    std::string text;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const std::uint32_t before = version_.load();
      text.clear();
      for (std::size_t i = 0; i < kMost; ++i) {
        const char next = text_[i].load(std::memory_order_acquire);
        if (next == '\0') break;
        text.push_back(next);
      }
      if (before % 2 == 0 && version_.load() == before) break;
    }
    return text;
  }

 private:
  static constexpr std::size_t kMost = 2000;
  static constexpr int kAttempts = 100;
  std::atomic<std::uint32_t> version_{0};  ///< odd: is being written
  std::array<std::atomic<char>, kMost + 1> text_{};
};

struct alignas(64) SharedSeat {
  std::atomic<std::uint32_t> state{0};
  std::atomic<std::uint32_t> pid{0};
  alignas(64) std::atomic<std::uint64_t> progress{0};
  SharedText text;
};

struct SharedBoard {
  std::atomic<std::uint64_t> magic{0};
  ProcessMark rig;
  Bell to_rig;
  Bell to_workers;
  std::atomic<std::int64_t> start{kNoStart};
  std::atomic<std::uint32_t> stop{0};
  std::array<SharedSeat, kMostGateClients> seats;
};

SharedBoard& board_of(const SharedSegment& segment) {
  return *static_cast<SharedBoard*>(segment.address());
}

}  // namespace

ControlBoard::ControlBoard(HostClock& clock, std::unique_ptr<SharedSegment> memory)
    : clock_(clock), memory_(std::move(memory)) {}

Result<std::unique_ptr<ControlBoard>> ControlBoard::create(HostClock& clock) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto memory,
                             SharedSegment::make("bubblesim.rig", sizeof(SharedBoard)));
  auto* board = new (memory->address()) SharedBoard;
  board->to_rig.id = clock.bell_id();
  board->to_workers.id = clock.bell_id();
  board->rig = this_process();
  board->magic.store(kMagic);
  return std::unique_ptr<ControlBoard>(new ControlBoard(clock, std::move(memory)));
}

ControlBoard::~ControlBoard() = default;

const std::string& ControlBoard::name() const { return memory_->name(); }

WorkerStatus ControlBoard::status(ClientId client) const {
  BUBBLESIM_CHECK(client.value < kMostGateClients, "no such seat");
  const SharedSeat& seat = board_of(*memory_).seats[client.index()];
  WorkerStatus status;
  status.state = static_cast<WorkerState>(seat.state.load());
  status.progress = seat.progress.load();
  status.text = seat.text.read();
  return status;
}

void ControlBoard::start(HostTime origin) {
  board_of(*memory_).start.store(origin.time_since_epoch().count());
  clock_.ring(board_of(*memory_).to_workers);
}

void ControlBoard::stop_all() {
  board_of(*memory_).stop.store(1);
  clock_.ring(board_of(*memory_).to_workers);
}

std::uint32_t ControlBoard::changes() const { return board_of(*memory_).to_rig.rings.load(); }

void ControlBoard::wait_for_change(std::uint32_t seen, HostTime deadline) {
  clock_.wait(board_of(*memory_).to_rig, seen, deadline);
}

ControlSeat::ControlSeat(HostClock& clock, std::unique_ptr<SharedSegment> memory, ClientId client)
    : clock_(clock), memory_(std::move(memory)), client_(client) {}

ControlSeat::~ControlSeat() = default;

Result<std::unique_ptr<ControlSeat>> ControlSeat::take(const std::string& name, HostClock& clock,
                                                       ClientId client) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto memory,
                             SharedSegment::open(name, sizeof(SharedBoard), "rig's memory"));
  if (board_of(*memory).magic.load() != kMagic) {
    return bubblesim::fail("\"" + name + "\" is no rig's memory of this version");
  }
  if (client.value >= kMostGateClients) {
    return bubblesim::fail("client " + std::to_string(client.value) +
                           " of a rig; there are at most " + std::to_string(kMostGateClients));
  }
  std::uint32_t nobody = 0;
  SharedSeat& seat = board_of(*memory).seats[client.index()];
  if (!seat.pid.compare_exchange_strong(nobody, static_cast<std::uint32_t>(getpid()))) {
    return bubblesim::fail("the seat of client " + std::to_string(client.value) +
                           " is taken by process " + std::to_string(nobody));
  }
  std::unique_ptr<ControlSeat> taken(new ControlSeat(clock, std::move(memory), client));
  taken->set_state(WorkerState::kPreparing);
  return taken;
}

void ControlSeat::set_state(WorkerState state) {
  SharedBoard& board = board_of(*memory_);
  board.seats[client_.index()].state.store(static_cast<std::uint32_t>(state));
  clock_.ring(board.to_rig);
}

void ControlSeat::fail(const std::string& why) {
  board_of(*memory_).seats[client_.index()].text.write(why);
  set_state(WorkerState::kFailed);
}

void ControlSeat::say(const std::string& text) {
  board_of(*memory_).seats[client_.index()].text.write(text);
  add_progress();
}

void ControlSeat::add_progress() {
  board_of(*memory_).seats[client_.index()].progress.fetch_add(1, std::memory_order_relaxed);
}

std::optional<HostTime> ControlSeat::start() const {
  const std::int64_t at = board_of(*memory_).start.load();
  return at == kNoStart ? std::nullopt : std::optional<HostTime>(HostTime{Duration{at}});
}

bool ControlSeat::stop_asked() const {
  const SharedBoard& board = board_of(*memory_);
  return board.stop.load() != 0 || has_ended(board.rig);
}

std::uint32_t ControlSeat::calls() const { return board_of(*memory_).to_workers.rings.load(); }

void ControlSeat::wait_for_call(std::uint32_t seen, HostTime deadline) {
  clock_.wait(board_of(*memory_).to_workers, seen, deadline);
}

void ControlSeat::call_worker() { clock_.ring(board_of(*memory_).to_workers); }

}  // namespace bubblesim::capture
