#include "capture/policy_host/gate_outlet.hpp"

#include <algorithm>
#include <utility>

namespace bubblesim::capture {
namespace {

GateTicket ticket_of(policy::Waiter waiter) {
  return {static_cast<std::uint32_t>(waiter), static_cast<std::uint32_t>(waiter >> 32U)};
}

}  // namespace

GateOutlet::GateOutlet(HostClock& clock, GateBoard& board, const std::vector<HostedClient>& clients)
    : clock_(clock), board_(board), clients_(clients.size()) {
  for (std::size_t i = 0; i < clients.size(); ++i) clients_[i].mode = clients[i].mode;
}

bool GateOutlet::has_parked() const {
  return std::ranges::any_of(clients_, [](const Client& client) { return !client.parked.empty(); });
}

void GateOutlet::call_returned() {
  call_returned_ = clock_.now();
  calls_.add(call_returned_ - call_began_);
}

// An unparked launch is no longer held, or never was: only its thread is released.
void GateOutlet::settle() {
  for (const Unparked& launch : std::exchange(unparked_, {})) let_go(launch.ticket);
}

// Does not hold collectives.
bool GateOutlet::park(const policy::LaunchInfo& launch, GateTicket ticket) {
  Client& client = clients_[launch.client.index()];
  if (!client.preempted || launch.kind == policy::WorkKind::kCollective) return false;
  client.parked.push_back(ticket);
  ++launches_parked_;
  return true;
}

void GateOutlet::let_go(GateTicket ticket) {
  if (!board_.let_go(ticket)) ++given_up_;
}

void GateOutlet::admit(const policy::LaunchInfo& launch, policy::Waiter waiter,
                       const std::optional<policy::LaunchForm>&) {
  if (waiter == policy::kNobodyWaits) return;
  const GateTicket ticket = ticket_of(waiter);
  if (park(launch, ticket)) {
    board_.hold(ticket);
    return;
  }
  let_go(ticket);
  decisions_.add(clock_.now() - asked_);
}

void GateOutlet::hold(const policy::HeldLaunch& launch) { board_.hold(ticket_of(launch.waiter)); }

void GateOutlet::release(const policy::HeldLaunch& launch,
                         const std::optional<policy::LaunchForm>&, policy::Instant) {
  const GateTicket ticket = ticket_of(launch.waiter);
  if (!park(launch.info, ticket)) let_go(ticket);
}

policy::Refusal GateOutlet::cap(ClientId, std::uint32_t) {
  return " while it runs; MPS sets them when a process starts";
}

policy::Refusal GateOutlet::prioritise(ClientId, std::int32_t) {
  return " while it runs; CUDA sets it when a stream is made";
}

policy::Refusal GateOutlet::slice(ClientId, Duration) {
  return " while it runs; the driver's slices are fixed";
}

policy::Refusal GateOutlet::preempt(ClientId id, policy::Preemption how) {
  if (how != policy::Preemption::kAfterKernel) {
    return " while it runs; a gate leaves resident blocks alone (after_kernel)";
  }
  Client& client = clients_[id.index()];
  if (client.mode == GateMode::kTell) return ", whose threads do not wait for verdicts";
  if (client.mode == GateMode::kPass) set_mode(id, GateMode::kAsk);  // so that it can be parked
  client.preempted = true;
  // Launches that this very call lets proceed have not gone on yet.
  for (const Unparked& launch : unparked_) {
    if (launch.client == id) client.parked.push_back(launch.ticket);
  }
  std::erase_if(unparked_, [id](const Unparked& launch) { return launch.client == id; });
  return {};
}

policy::Refusal GateOutlet::proceed(ClientId id) {
  Client& client = clients_[id.index()];
  client.preempted = false;
  for (const GateTicket ticket : std::exchange(client.parked, {})) {
    unparked_.push_back({id, ticket});
  }
  return {};
}

policy::Refusal GateOutlet::reshape(ClientId, const policy::LaunchForm&) {
  return " while it runs; a gate cannot rewrite kernels";
}

policy::Refusal GateOutlet::move_memory(ClientId, Bytes, Bytes) {
  return " while it runs; a gate cannot move it";
}

policy::Refusal GateOutlet::set_asking(ClientId id, bool asks) {
  const Client& client = clients_[id.index()];
  if (client.preempted && !asks) return " while its launches are parked";
  if (client.mode != GateMode::kPass) set_mode(id, asks ? GateMode::kAsk : GateMode::kTell);
  return {};
}

void GateOutlet::set_mode(ClientId id, GateMode mode) {
  clients_[id.index()].mode = mode;
  board_.set_mode(id, mode);
}

}  // namespace bubblesim::capture
