// Messages between a rig and its worker processes while they run: a small shared memory with a seat
// for each job, by client. The rig has the board; each worker takes a seat for each of its jobs.
// (Plans and records are files; launches go through the gate.)
//
// States of a seat: starting -> preparing -> ready -> running (-> ending) -> done; any -> failed.
// The rig waits until all are ready, sets the common start, and may stop all. All calls are
// thread-safe; those that ring or wait are for threads that take part in the clock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "capture/clock/host_clock.hpp"
#include "capture/clock/shared_segment.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

enum class WorkerState : std::uint32_t {
  kStarting,   ///< no worker has taken the seat yet
  kPreparing,  ///< reads the plan, opens gate and device, measures stand-ins
  kReady,      ///< waits for the start
  kRunning,
  kEnding,      ///< has done its iterations; closes its device and writes its record
  kDone,       ///< its record is written
  kFailed,     ///< text says why; a record may have been written
};

/// A seat at one moment.
struct WorkerStatus {
  WorkerState state = WorkerState::kStarting;
  /// Grows while the worker is not stuck: with steps, ended operations, messages about preparing,
  /// and once a second while none of its threads is inside a call of the device.
  std::uint64_t progress = 0;
  std::string text;              ///< kFailed: why; else its last message on preparing
};

/// The rig's side.
class ControlBoard {
 public:
  /// Makes the shared memory under a name of its own. Fault: it cannot be made. `clock` outlives
  /// the board.
  [[nodiscard]] static Result<std::unique_ptr<ControlBoard>> create(HostClock& clock);
  /// Removes the shared memory; workers that have it keep it until they end.
  ~ControlBoard();
  ControlBoard(const ControlBoard&) = delete;
  ControlBoard& operator=(const ControlBoard&) = delete;

  /// What `bubblesim_replay --control` takes.
  [[nodiscard]] const std::string& name() const;

  /// `client` below kMostGateClients.
  [[nodiscard]] WorkerStatus status(ClientId client) const;

  /// Sets every job's time 0, which may lie ahead. Called once; holds for later seats too.
  void start(HostTime origin);
  /// Makes all jobs end soon: before their next step, or out of their present wait. A launch that
  /// the policy holds ends with the gate (PolicyHost::stop) or its release.
  void stop_all();

  /// Changes of seats' states so far. Use: `seen = changes()`, check the awaited condition, then
  /// wait_for_change(seen).
  [[nodiscard]] std::uint32_t changes() const;
  void wait_for_change(std::uint32_t seen, HostTime deadline);

 private:
  ControlBoard(HostClock& clock, std::unique_ptr<SharedSegment> memory);

  HostClock& clock_;
  std::unique_ptr<SharedSegment> memory_;
};

/// A worker's side: one job's seat.
class ControlSeat {
 public:
  /// Takes the seat, which then is kPreparing. Fault: no such board, one of another version, or
  /// the seat is taken. `clock` outlives the seat.
  [[nodiscard]] static Result<std::unique_ptr<ControlSeat>> take(const std::string& name,
                                                                 HostClock& clock,
                                                                 ClientId client);
  ~ControlSeat();
  ControlSeat(const ControlSeat&) = delete;
  ControlSeat& operator=(const ControlSeat&) = delete;

  /// Tell the rig the seat's state; fail() is kFailed with the reason.
  void set_state(WorkerState state);
  void fail(const std::string& why);
  /// Reports how far preparing is, "stand-ins 12 of 40"; counts as progress.
  void say(const std::string& text);
  void add_progress();

  /// When all jobs start; nothing until the rig has set the time.
  [[nodiscard]] std::optional<HostTime> start() const;
  /// Whether the rig wants the job to end, or has died.
  [[nodiscard]] bool stop_asked() const;

  /// Rung at ControlBoard::start and stop_all, and by call_worker().
  [[nodiscard]] std::uint32_t calls() const;
  void wait_for_call(std::uint32_t seen, HostTime deadline);
  /// Wakes the process's own threads, as the rig does, so that they look again.
  void call_worker();

 private:
  ControlSeat(HostClock& clock, std::unique_ptr<SharedSegment> memory, ClientId client);

  HostClock& clock_;
  std::unique_ptr<SharedSegment> memory_;
  ClientId client_;
};

}  // namespace bubblesim::capture
