// The launching side of the gate: a process asks before each launch, and reports ends.
//
// The gate is shared memory (Boost.Interprocess) between one policy host (policy_host/) and the
// processes whose launches it decides on. Each thread has a ring of messages of its own; the host
// takes them in the order of their times. The host sets whether a client waits for a verdict: the
// protected client tells and goes on (kTell), a filler asks and waits (kAsk), and launches on which
// no decision depends are not reported (kPass).
//
// No process's death stops another: if the host has died, been silent for longer than `patience`,
// or opened the gate for good, launches go on as if there were no gate, and are counted. No call
// throws or logs, and none but a thread's first allocates. Thread-safe; each thread uses its own
// ring. A forked child is not the client: its launches go on, and count in the child only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "capture/clock/host_clock.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::capture {

/// The most clients and threads of one gate; further ones are refused by name.
inline constexpr std::uint32_t kMostGateClients = 16;
inline constexpr std::uint32_t kMostGateThreads = 64;

/// Whether a client's threads wait for a verdict.
enum class GateMode : std::uint32_t {
  kTell,  ///< launches are reported and go on; holding one is an illegal decision
  kAsk,
  kPass,  ///< launches are counted and go on: the policy does not look at them
};

/// The result of a launch at the gate.
struct Passage {
  Duration asked{};         ///< from the request until the thread goes on; 0: it did not ask
  bool held = false;        ///< the policy held it
  bool gate_open = false;   ///< no decision: the gate is open for good or its host gone
};

/// Counts of one process at the gate; written by its own threads only.
struct GateClientCounts {
  std::uint64_t launches = 0;
  std::uint64_t ungated = 0;         ///< launches without a decision
  std::uint64_t messages_dropped = 0;  ///< lost because the thread's ring was full
};

class GateClient {
 public:
  /// Joins the gate of this name as this client. Fault: there is no such gate, it is of another
  /// version, or the client's place is taken by a live process. `clock` outlives the client, whose
  /// threads take part in it.
  [[nodiscard]] static Result<std::unique_ptr<GateClient>> open(
      const std::string& name, ClientId client, HostClock& clock,
      Duration patience = std::chrono::seconds(1));
  virtual ~GateClient() = default;

  /// Before a launch reaches the driver: waits for the verdict if the host wants to be asked.
  /// `launch.client` and `.launch` are filled in here (numbers count up from 1 by client).
  virtual Passage launch(policy::LaunchInfo launch) = 0;
  /// The number that the calling thread's last launch() got.
  [[nodiscard]] virtual std::uint64_t last_launch() const = 0;

  /// Reports in one message that this many operations of the launch have ended.
  virtual void completed(program::WorkKind kind, std::uint64_t launch,
                         std::uint32_t operations = 1) = 0;
  /// Whether a message of the calling thread would not be dropped: its ring has room, or the gate
  /// is open for good.
  [[nodiscard]] virtual bool has_room() const = 0;
  virtual void iteration_ended(Duration length) = 0;
  virtual void bubble_began(const policy::BubbleInfo& bubble) = 0;
  virtual void bubble_ended() = 0;

  /// Launches of this client that may be on the device at once (a bounded window limits how long a
  /// policy's decision takes to show); the host may change it at any time. 0: no limit, or the gate
  /// is open for good.
  [[nodiscard]] virtual std::uint32_t window() const = 0;
  /// Called by threads waiting at the gate: opens the gate if the host's process has ended.
  virtual void look_for_host() = 0;

  [[nodiscard]] virtual GateClientCounts counts() const = 0;
};

}  // namespace bubblesim::capture
