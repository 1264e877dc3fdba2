// One GPU of a machine and the clients that share it, by a policy's decisions, or without a policy
// in one context.
//
// The policy is asked for its decisions before the start and the GPU is set up accordingly; then
// the policy's driver receives the launches of every client. Clients are added in the order in
// which the policy heard of them; refused ones get no program.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"
#include "sim/schedule/bubble_table.hpp"
#include "sim/schedule/gpu_plan.hpp"
#include "sim/schedule/policy_driver.hpp"
#include "sim/workload/machine.hpp"

namespace bubblesim::schedule {

/// The policy of a GPU, with its inputs.
struct Decider {
  const policy::PolicySpec* policy = nullptr;  ///< null: none
  const policy::ParameterSet* parameters = nullptr;
  const BubbleTable* bubbles = nullptr;  ///< null unless the policy needs them
  HoldListener* holds = nullptr;         ///< hears of held launches; null: none
  const policy::GateCosts* gate = nullptr;  ///< of the run; null: see gate_terms.hpp
};

/// Watches one client's program and reports its operations to the policy. A derived class that
/// watches for more calls the methods that it overrides here, and reports the ends of iterations.
class ClientWatch : public workload::RunObserver {
 public:
  void on_op_started(workload::ProgramRun& run, std::uint32_t op, SimTime now) override {
    if (driver_ != nullptr) driver_->op_started(run, op, now);
  }
  void on_op_finished(const workload::OpRecord& record) override {
    if (driver_ != nullptr) driver_->op_finished(record);
  }

 protected:
  /// An iteration of training, or a pass of a filler, has ended.
  void tell_iteration(const workload::ProgramRun& run, Duration length, SimTime now) {
    if (driver_ != nullptr) driver_->iteration_ended(run, length, now);
  }

 private:
  friend class SharedGpu;
  PolicyDriver* driver_ = nullptr;  ///< null: no policy
};

class SharedGpu {
 public:
  /// Adds a GPU to the machine; `bound` is Machine::add_gpu's. The machine and the objects in
  /// `decider` outlive this. Fault: an illegal decision before the start.
  [[nodiscard]] static Result<std::unique_ptr<SharedGpu>> make(
      workload::Machine& machine, const Decider& decider, std::vector<policy::ClientInfo> clients,
      const engine::ContactBound* bound = nullptr);

  /// Adds the next client and its `program`; null: it is absent. Returns its run; null: absent or
  /// refused. Sets client, gate and observer of `setup`. `watch` outlives the machine's last run.
  workload::ProgramRun* add_client(const program::Program* program, workload::RunSetup setup,
                                   ClientWatch* watch);
  /// Begins the policy's session, once all clients are added.
  void start();

  [[nodiscard]] const policy::StartDecisions& decided() const { return plan_.decided; }
  [[nodiscard]] engine::Engine& engine() const { return gpu_.engine; }
  [[nodiscard]] gpu::ClientUsage usage(const workload::ProgramRun& client) const {
    return gpu_.gpu.usage(client.client());
  }
  [[nodiscard]] gpu::Gpu& device() const { return gpu_.gpu; }
  /// Null: no policy.
  [[nodiscard]] const policy::Policy* policy() const { return policy_.get(); }
  [[nodiscard]] const policy::CheckedActions* session() const {
    return driver_ ? &driver_->session() : nullptr;
  }
  /// The session's counts; launches that need no verdict (policy::Needs) also count as decision
  /// points. Nothing: no policy.
  [[nodiscard]] std::optional<policy::SessionCounts> counts() const;
  /// The illegal decision that stopped the engine.
  [[nodiscard]] std::optional<Error> fault() const;

  /// Whether the memory of every client with a program is known, including queued ones.
  [[nodiscard]] bool memory_known() const;
  /// Memory on the device of these clients, as far as known, at the start and now. Workers of fill
  /// jobs are left out: their jobs decide how much they hold.
  [[nodiscard]] Bytes memory_at_start() const;
  [[nodiscard]] Bytes memory_now() const;

 private:
  SharedGpu(workload::Machine& machine, workload::MachineGpu& gpu,
            std::vector<policy::ClientInfo> infos, GpuPlan plan,
            std::unique_ptr<policy::Policy> policy, const Decider& decider);

  workload::Machine& machine_;
  workload::MachineGpu& gpu_;
  std::vector<policy::ClientInfo> infos_;
  GpuPlan plan_;
  std::unique_ptr<policy::Policy> policy_;
  Decider decider_;
  policy::GateCosts gate_;
  std::unique_ptr<PolicyDriver> driver_;  ///< null: no policy
  bool asks_ = false;                     ///< launches wait for its verdict
  std::vector<workload::ProgramRun*> clients_;  ///< clients so far; null: without a program
};

}  // namespace bubblesim::schedule
