// The launching side of the gate: a process asks before each launch, and tells what happens.
//
// The gate is shared memory (Boost.Interprocess) between one policy host (policy_host/) and the
// processes whose launches it decides on. Each thread has a ring of messages of its own; the host
// takes them in the order of their times. Whether a client waits for a verdict is the host's to
// say: the protected client tells and goes on (kTell), a filler asks and waits (kAsk), and where no
// decision depends on launches, nobody hears of them (kPass).
//
// Nobody's death stops anybody: where the host has died, gone silent for longer than `patience`,
// or closed the gate, launches go on as if there were none, and are counted. No call throws or
// logs, and none but a thread's first allocates. Thread-safe; each thread uses its own ring. A
// forked child is not the client: its launches go on, and count in the child only.
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

/// What became of a launch at the gate.
struct Passage {
  Duration asked{};         ///< from the request to the thread's going on; 0 where it did not ask
  bool held = false;        ///< the policy held it
  bool gate_open = false;   ///< nobody decided: the gate is closed or its host gone
};

/// What one process met at the gate; written by its own threads only.
struct GateClientCounts {
  std::uint64_t launches = 0;
  std::uint64_t ungated = 0;         ///< launches while nobody decided
  std::uint64_t messages_dropped = 0;  ///< told while the thread's ring was full
};

class GateClient {
 public:
  /// Joins the gate of this name as this client. Fault: there is no such gate, it is of another
  /// version, or the client's place is taken by a live process. `clock` outlives the client; its
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

  /// So many operations of the launch have ended, in one message.
  virtual void completed(program::WorkKind kind, std::uint64_t launch,
                         std::uint32_t operations = 1) = 0;
  /// Whether a message of the calling thread would be kept: the host has taken what its ring had,
  /// or nobody listens.
  [[nodiscard]] virtual bool has_room() const = 0;
  virtual void iteration_ended(Duration length) = 0;
  virtual void bubble_began(const policy::BubbleInfo& bubble) = 0;
  virtual void bubble_ended() = 0;

  /// Launches of this client that may be on the device at once (a bounded window limits how long
  /// a policy's decision takes to show); the host may change it at any time. 0: no limit, or nobody
  /// decides any more.
  [[nodiscard]] virtual std::uint32_t window() const = 0;
  /// For who waits at the window, now and then: opens the gate if the host's process has ended.
  virtual void look_for_host() = 0;

  [[nodiscard]] virtual GateClientCounts counts() const = 0;
};

}  // namespace bubblesim::capture
