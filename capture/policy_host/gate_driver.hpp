// Drives a policy by what the clients of a gate say: the session's rules, with a board in place of
// a simulated GPU.
//
// A gate has troubles that a simulated GPU has not: messages that never came (a full ring),
// launches that nobody decided on, threads that gave up waiting. So completions of launches that
// the policy never saw are kept from it, and completions of a launch that it still holds are told
// when it has released the launch.
//
// Used by one thread. It asks the clock only how long the policy takes: whoever drives it says at
// what instant things happen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/gate/gate_board.hpp"
#include "capture/policy_host/gate_outlet.hpp"
#include "capture/policy_host/policy_host.hpp"
#include "sim/policy/session/session.hpp"

namespace bubblesim::capture {

class GateDriver {
 public:
  /// All references outlive the driver.
  GateDriver(HostClock& clock, GateBoard& board, const PolicyHostSetup& setup);

  /// Asks for the first tick.
  void start(policy::Instant now) { session_.begin(now); }
  /// Handles something that a client said. Must not be called after a fault.
  void handle(const GateEvent& event, policy::Instant now);
  void tick(policy::Instant now);
  /// The client's process has ended.
  void gone(ClientId client, policy::Instant now);

  [[nodiscard]] std::optional<policy::Instant> next_tick() const { return outlet_.next_tick(); }
  /// A thread waits at the gate.
  [[nodiscard]] bool has_waiting() const;
  [[nodiscard]] bool is_gone(ClientId client) const { return session_.is_gone(client); }
  [[nodiscard]] const std::optional<Error>& fault() const { return session_.fault(); }
  [[nodiscard]] PolicyHostCounts counts() const;
  /// What the gate counted. `ungated`: launches that nobody decided on, though somebody should.
  void add_counts(CounterSet& counters, std::uint64_t ungated) const;

 private:
  void decide(const GateEvent& event, policy::Instant now);
  void complete(const policy::LaunchInfo& launch, policy::Instant now);
  void deliver_kept(policy::Instant now);

  GateBoard& board_;
  GateOutlet outlet_;
  std::size_t clients_;
  policy::Session<GateOutlet> session_;
  /// The last launches that the policy saw, by client, each at its number modulo the size; empty:
  /// the policy does not hear of completions.
  std::vector<std::vector<std::uint64_t>> seen_;
  std::vector<policy::CompletionInfo> kept_;  ///< of launches that are held
  std::uint64_t unseen_completions_ = 0;
  std::uint64_t clients_died_ = 0;
};

}  // namespace bubblesim::capture
