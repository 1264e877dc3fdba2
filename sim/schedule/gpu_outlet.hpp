// Carries out a policy's legal decisions on a simulated GPU: lets threads go on; caps, ranks and
// preempts clients; changes their kernels and memory.
//
// Moving memory takes its time over the host link, one move after the other. Until a whole move is
// done, kernels reach memory as before it; the link's other work is not slowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/policy/gate_terms.hpp"
#include "sim/policy/session/outlet.hpp"
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
        wake_timer_(engine, *this, &GpuOutlet::wake),
        moves_timer_(engine, *this, &GpuOutlet::end_moves) {}

  /// Attaches runs in order of policy clients; null: a refused client. 0 bytes: not known.
  void attach(workload::ProgramRun* run, Bytes memory, Bytes resident,
              const policy::GateTerms& terms);
  [[nodiscard]] const policy::GateTerms& terms(std::size_t client) const {
    return clients_[client].terms;
  }
  [[nodiscard]] std::size_t client_of(const workload::ProgramRun& run) const;

  void admit(const policy::LaunchInfo& launch, policy::Waiter waiter,
             const std::optional<policy::LaunchForm>& form) override;
  void release(const policy::HeldLaunch& launch, const std::optional<policy::LaunchForm>& form,
               policy::Instant now) override;
  policy::Refusal cap(ClientId client, std::uint32_t percentage) override;
  policy::Refusal prioritise(ClientId client, std::int32_t priority) override;
  policy::Refusal slice(ClientId client, Duration slice) override;
  policy::Refusal preempt(ClientId client, policy::Preemption how) override;
  policy::Refusal proceed(ClientId client) override;
  policy::Refusal reshape(ClientId, const policy::LaunchForm&) override { return {}; }
  policy::Refusal move_memory(ClientId client, Bytes resident, Bytes moved) override;
  policy::Refusal set_asking(ClientId client, bool asks) override;
  void arm_tick(std::optional<policy::Instant> next, policy::Instant now) override;
  void end() override { engine_.stop(); }

 private:
  struct Client {
    workload::ProgramRun* run = nullptr;
    Bytes memory;
    policy::GateTerms terms;
  };
  /// A released thread that still sleeps.
  struct Sleeper {
    SimTime due{};
    policy::HeldLaunch launch;
    std::optional<policy::LaunchForm> form;
  };
  struct Move {
    SimTime due{};
    std::size_t client = 0;
    Bytes resident;
  };

  [[nodiscard]] ClientId gpu_client_of(ClientId client) const {
    return clients_[client.index()].run->client();
  }
  void go_on(const policy::HeldLaunch& launch, const std::optional<policy::LaunchForm>& form,
             SimTime now);
  void wake(SimTime now);
  void end_moves(SimTime now);
  static void place_memory(const Client& client, Bytes resident);

  engine::Engine& engine_;
  gpu::Gpu& gpu_;
  engine::EntityId ticks_;
  HoldListener* holds_;
  std::vector<Client> clients_;
  std::deque<Sleeper> sleepers_;  ///< in order of due times
  std::deque<Move> moves_;        ///< in order of due times
  MethodTimer<GpuOutlet> wake_timer_;
  MethodTimer<GpuOutlet> moves_timer_;
};

}  // namespace bubblesim::schedule
