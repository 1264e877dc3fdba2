// Carries out a policy's legal decisions on a simulated GPU: lets threads go on; caps, ranks and
// preempts clients; changes their kernels and memory.
//
// Moving memory takes its time over the host link, one move after the other. Until a whole move is
// done, kernels reach memory as before it; the link's other work is not slowed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/engine/engine.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/policy/gate_terms.hpp"
#include "sim/policy/session/outlet.hpp"
#include "sim/schedule/gpu_plan.hpp"
#include "sim/schedule/method_timer.hpp"
#include "sim/workload/program_run.hpp"

namespace bubblesim::schedule {

/// Hears when a held launch goes on, for timelines.
class HoldListener {
 public:
  virtual ~HoldListener() = default;
  virtual void on_hold_ended(ClientId client, SimTime since, SimTime now) = 0;
};

class GpuOutlet final : public policy::Outlet {
 public:
  /// `ticks`: the entity of the policy's ticks. All references outlive the outlet; `holds` may be
  /// null.
  GpuOutlet(engine::Engine& engine, gpu::Gpu& gpu, engine::EntityId ticks, HoldListener* holds)
      : engine_(engine), gpu_(gpu), ticks_(ticks), holds_(holds),
        sleepers_(engine, *this, &GpuOutlet::go_on),
        moves_(engine, *this, &GpuOutlet::end_move) {}

  /// Attaches runs in order of policy clients; null: a refused client. 0 bytes: not known.
  void attach(workload::ProgramRun* run, Bytes memory, Bytes resident,
              const policy::GateTerms& terms) {
    clients_.push_back({run, memory, terms});
    place_memory(clients_.back(), resident);
  }
  [[nodiscard]] const policy::GateTerms& terms(std::size_t client) const {
    return clients_[client].terms;
  }
  [[nodiscard]] std::size_t client_of(const workload::ProgramRun& run) const {
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      if (clients_[i].run == &run) return i;
    }
    BUBBLESIM_CHECK(false, "a run that was not attached");
    return 0;
  }

  /// The thread is inside its call, and goes on when the driver returns the verdict.
  void admit(const policy::LaunchInfo& launch, policy::Waiter,
             const std::optional<policy::LaunchForm>& form) override {
    if (form) clients_[launch.client.index()].run->reshape(*form);
  }
  void release(const policy::HeldLaunch& launch, const std::optional<policy::LaunchForm>& form,
               policy::Instant now) override {
    const policy::GateSleep& sleep = terms(launch.info.client.index()).sleep;
    if (sleep.wake == Duration{} || now - launch.since <= sleep.spin) {
      return go_on({launch, form}, kSimStart + now);
    }
    sleepers_.add(kSimStart + now + sleep.wake, {launch, form});
  }
  policy::Refusal cap(ClientId client, std::uint32_t percentage) override {
    gpu_.set_sm_cap(gpu_client_of(client), sm_cap(percentage, gpu_.spec()));
    return {};
  }
  policy::Refusal prioritise(ClientId client, std::int32_t priority) override {
    gpu_.set_priority(gpu_client_of(client), priority);
    return {};
  }
  policy::Refusal slice(ClientId client, Duration slice) override {
    gpu_.set_slice(gpu_client_of(client), slice);
    return {};
  }
  policy::Refusal preempt(ClientId client, policy::Preemption how) override {
    gpu_.preempt(gpu_client_of(client), how);
    return {};
  }
  policy::Refusal proceed(ClientId client) override {
    gpu_.proceed(gpu_client_of(client));
    return {};
  }
  policy::Refusal reshape(ClientId, const policy::LaunchForm&) override { return {}; }
  policy::Refusal move_memory(ClientId client, Bytes resident, Bytes moved) override {
    const double host = gpu_.spec().host_bandwidth.value;
    const double nanoseconds = host > 0 ? static_cast<double>(moved.value) / host * 1e9 : 0;
    moves_.add(moves_.last_due() + Duration{std::llround(nanoseconds)}, {client.index(), resident});
    return {};
  }
  policy::Refusal set_asking(ClientId client, bool asks) override {
    clients_[client.index()].terms.asks = asks;
    return {};
  }
  void arm_tick(std::optional<policy::Instant> next, policy::Instant now) override {
    if (!next) {
      engine_.cancel(ticks_);
      return;
    }
    const SimTime due = kSimStart + std::max(*next, now);
    if (engine_.due(ticks_) != due) engine_.schedule(ticks_, due);
  }
  void end() override { engine_.stop(); }

 private:
  struct Client {
    workload::ProgramRun* run = nullptr;
    Bytes memory;
    policy::GateTerms terms;
  };
  struct Released {
    policy::HeldLaunch launch;
    std::optional<policy::LaunchForm> form;
  };
  struct Move {
    std::size_t client = 0;
    Bytes resident;
  };

  [[nodiscard]] ClientId gpu_client_of(ClientId client) const {
    return clients_[client.index()].run->client();
  }
  /// A thread that goes on may ask, and others be let go, before this returns.
  void go_on(const Released& released, SimTime time) {
    const auto& [launch, form] = released;
    if (holds_ != nullptr) {
      holds_->on_hold_ended(launch.info.client, kSimStart + launch.since, time);
    }
    workload::ProgramRun& run = *clients_[launch.info.client.index()].run;
    if (form) run.reshape(*form);
    run.resume(static_cast<std::uint32_t>(launch.waiter), time);
  }
  void end_move(const Move& move, SimTime) { place_memory(clients_[move.client], move.resident); }
  static void place_memory(const Client& client, Bytes resident) {
    if (client.run == nullptr || client.memory == Bytes{}) return;
    client.run->set_remote_share(1 - static_cast<double>(resident.value) /
                                         static_cast<double>(client.memory.value));
  }

  engine::Engine& engine_;
  gpu::Gpu& gpu_;
  engine::EntityId ticks_;
  HoldListener* holds_;
  std::vector<Client> clients_;
  WaitingItems<GpuOutlet, Released> sleepers_;  ///< released threads that still sleep
  WaitingItems<GpuOutlet, Move> moves_;
};

}  // namespace bubblesim::schedule
