// The host's side of a gate: its memory, its clients' messages, and the answers.
//
// One thread takes messages and answers them; open(), knock() and mark_gone() may come from any
// thread that takes part in the clock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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
                                                               std::uint32_t clients);
  /// Opens the gate and removes its name.
  ~GateBoard();
  GateBoard(const GateBoard&) = delete;
  GateBoard& operator=(const GateBoard&) = delete;

  [[nodiscard]] const std::string& name() const { return memory_->name(); }
  /// The gate decides about launches on all GPUs, not only on the GPU of the filler's first launch.
  void watch_all_gpus() { segment_.gpu.read_or_set({}); }
  void set_mode(ClientId client, GateMode mode);
  void set_window(ClientId client, std::uint32_t launches);

  /// The waiting message that was sent first; by number among messages of one time.
  [[nodiscard]] std::optional<GateEvent> take();

  /// Tells the thread to wait. False: it has given up.
  bool hold(GateTicket ticket);
  /// Lets the thread go on, held or not. False: it has given up.
  bool let_go(GateTicket ticket);

  /// Writes the heartbeat: the host is alive at this time.
  void beat(HostTime now);
  /// Number of knocks so far. Read it before looking for the change that a knock announces.
  [[nodiscard]] std::uint32_t knocks() const { return segment_.host_bell.rings; }
  /// Returns on a message, after more than `knocks` knocks, or at `deadline`; maybe earlier.
  void wait(std::uint32_t knocks, HostTime deadline);
  void knock();

  /// Opens the gate for good: no launch is held or asks any more.
  void open();
  [[nodiscard]] bool is_open() const { return segment_.open != 0; }

  /// Launches up to this number came from processes that have ended or left the client's place:
  /// none is on the device any more, and another process may take the place.
  [[nodiscard]] std::uint64_t ended_through(ClientId client) const;
  /// Lets no further process join as this client. Messages that were sent can still be taken.
  void mark_gone(ClientId client);

  /// The least patience of a client: it takes a host that is silent for longer for dead. 0: no
  /// client.
  [[nodiscard]] Duration shortest_patience() const;
  [[nodiscard]] std::uint64_t messages_dropped() const;
  [[nodiscard]] std::uint64_t launches_ungated() const;
  [[nodiscard]] std::uint64_t launches_passed() const;  ///< in GateMode::kPass

 private:
  GateBoard(HostClock& clock, std::unique_ptr<SharedSegment> memory);
  void set_up(std::uint32_t clients);
  [[nodiscard]] bool has_messages() const;
  /// The row with the earliest message seen in one look at all rows.
  [[nodiscard]] std::optional<std::uint32_t> earliest_row();
  void free_if_left(GateRow& row);
  bool answer(GateTicket ticket, Answer from, Answer to);

  HostClock& clock_;
  std::unique_ptr<SharedSegment> memory_;
  GateSegment& segment_;
};

}  // namespace bubblesim::capture
