// Carries out a policy's legal decisions at a gate: threads go on, or wait. Changes that hardware
// cannot make while a process runs are refused: another SM percentage, priority or slice, driving
// resident blocks off, other forms of kernels, moving memory.
//
// Preemption (kAfterKernel) is done by the gate: launches of the client but collectives are parked,
// even if the policy admitted or released them; launches already on the device run to their end.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/gate/gate_board.hpp"
#include "capture/policy_host/policy_host.hpp"
#include "sim/policy/session/outlet.hpp"

namespace bubblesim::capture {

/// The session's name for the thread that holds the ticket.
[[nodiscard]] constexpr policy::Waiter waiter_of(GateTicket ticket) {
  return policy::Waiter{ticket.ask} << 32U | ticket.row;
}

class GateOutlet final : public policy::Outlet {
 public:
  /// Clock and board outlive the outlet.
  GateOutlet(HostClock& clock, GateBoard& board, const std::vector<HostedClient>& clients);

  /// Sets when the thread asked for the launch that is decided next.
  void set_asked(HostTime time) { asked_ = time; }
  /// Called when the client's process has ended: none of its launches is parked any more.
  void forget(ClientId client) { clients_[client.index()].parked.clear(); }
  [[nodiscard]] bool has_parked() const;

  [[nodiscard]] std::optional<policy::Instant> next_tick() const { return tick_; }
  [[nodiscard]] SpanSummary decision_latency() const { return decisions_.summary(); }
  [[nodiscard]] SpanSummary policy_call() const { return calls_.summary(); }
  /// Number of threads that gave up before their answer came.
  [[nodiscard]] std::uint64_t given_up() const { return given_up_; }
  /// Launches that were ever parked.
  [[nodiscard]] std::uint64_t launches_parked() const { return launches_parked_; }

  void admit(const policy::LaunchInfo& launch, policy::Waiter waiter,
             const std::optional<policy::LaunchForm>& form) override;
  void hold(const policy::HeldLaunch& launch) override;
  void release(const policy::HeldLaunch& launch, const std::optional<policy::LaunchForm>& form,
               policy::Instant now) override;
  policy::Refusal cap(ClientId client, std::uint32_t percentage) override;
  policy::Refusal prioritise(ClientId client, std::int32_t priority) override;
  policy::Refusal slice(ClientId client, Duration slice) override;
  policy::Refusal preempt(ClientId client, policy::Preemption how) override;
  policy::Refusal proceed(ClientId client) override;
  policy::Refusal reshape(ClientId client, const policy::LaunchForm& form) override;
  policy::Refusal move_memory(ClientId client, Bytes resident, Bytes moved) override;
  policy::Refusal set_asking(ClientId client, bool asks) override;
  void arm_tick(std::optional<policy::Instant> next, policy::Instant) override { tick_ = next; }
  void call_begins() override { call_began_ = clock_.now(); }
  void call_returned() override;
  void settle() override;

 private:
  struct Client {
    GateMode mode = GateMode::kAsk;
    bool preempted = false;
    std::vector<GateTicket> parked;
  };
  struct Unparked {
    ClientId client;
    GateTicket ticket;
  };

  /// Parks the launch of a preempted client; false: the thread may go on.
  bool park(const policy::LaunchInfo& launch, GateTicket ticket);
  void let_go(GateTicket ticket);
  void set_mode(ClientId client, GateMode mode);

  HostClock& clock_;
  GateBoard& board_;
  std::vector<Client> clients_;
  std::vector<Unparked> unparked_;  ///< by the present call
  std::optional<policy::Instant> tick_;
  HostTime asked_{};
  HostTime call_began_{};
  HostTime call_returned_{};
  SpanHistogram decisions_;
  SpanHistogram calls_;
  std::uint64_t given_up_ = 0;
  std::uint64_t launches_parked_ = 0;
};

}  // namespace bubblesim::capture
