#include "sim/schedule/shared_gpu.hpp"

#include <utility>

#include "sim/policy/gate_terms.hpp"
#include "sim/policy/session/start.hpp"

namespace bubblesim::schedule {
Result<std::unique_ptr<SharedGpu>> SharedGpu::make(workload::Machine& machine,
                                                   const Decider& decider,
                                                   std::vector<policy::ClientInfo> clients,
                                                   const engine::ContactBound* bound) {
  std::unique_ptr<policy::Policy> policy;
  GpuPlan plan;
  if (decider.policy != nullptr) {
    BUBBLESIM_ASSIGN_OR_RETURN(policy,
                               policy::make_policy(*decider.policy, *decider.parameters));
    BUBBLESIM_ASSIGN_OR_RETURN(plan, plan_gpu(*decider.policy, *policy, machine.spec(), clients));
  } else {
    plan = plan_without_policy(clients);
  }
  workload::MachineGpu& gpu = machine.add_gpu(plan.sharing, bound);
  return std::unique_ptr<SharedGpu>(new SharedGpu(machine, gpu, std::move(clients),
                                                  std::move(plan), std::move(policy), decider));
}

SharedGpu::SharedGpu(workload::Machine& machine, workload::MachineGpu& gpu,
                     std::vector<policy::ClientInfo> infos, GpuPlan plan,
                     std::unique_ptr<policy::Policy> policy, const Decider& decider)
    : machine_(machine), gpu_(gpu), infos_(std::move(infos)), plan_(std::move(plan)),
      policy_(std::move(policy)), decider_(decider) {
  if (!policy_) return;
  gate_ = policy::gate_costs(*decider.policy, *decider.parameters, decider.gate);
  asks_ = decider.policy->needs.launches || gate_.always;
  driver_ = std::make_unique<PolicyDriver>(gpu.engine, gpu.gpu, *decider.policy, *policy_,
                                           decider.bubbles, decider.holds);
}

workload::ProgramRun* SharedGpu::add_client(const program::Program* program,
                                            workload::RunSetup setup, ClientWatch* watch) {
  const std::size_t index = clients_.size();
  clients_.push_back(nullptr);
  if (program != nullptr && plan_.decided.admissions[index].admitted) {
    setup.client = plan_.clients[index];
    watch->driver_ = driver_.get();
    setup.gate = asks_ ? driver_.get() : nullptr;
    setup.observer = watch;
    clients_.back() = &machine_.add_program(gpu_, *program, setup);
  }
  if (!driver_) return clients_.back();
  if (clients_.back() == nullptr) {
    driver_->attach(nullptr);
  } else {
    driver_->attach(clients_.back(), infos_[index].memory, plan_.decided.resident[index],
                    policy::gate_terms(*decider_.policy, *decider_.parameters, infos_[index].id,
                                       gate_));
  }
  return clients_.back();
}

void SharedGpu::start() {
  if (driver_) driver_->start();
}

std::optional<policy::SessionCounts> SharedGpu::counts() const {
  if (!driver_) return std::nullopt;
  policy::SessionCounts counts = driver_->session().counts();
  for (const workload::ProgramRun* client : clients_) {
    if (!asks_ && client != nullptr) counts.calls += client->launch_calls();
  }
  return counts;
}

std::optional<Error> SharedGpu::fault() const {
  return driver_ ? driver_->session().fault() : std::nullopt;
}

bool SharedGpu::memory_known() const {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i] != nullptr && !infos_[i].memory_known) return false;
  }
  return true;
}

Bytes SharedGpu::memory_at_start() const {
  Bytes total;
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i] != nullptr && !infos_[i].queued) total = total + plan_.decided.resident[i];
  }
  return total;
}

Bytes SharedGpu::memory_now() const {
  if (!driver_) return memory_at_start();
  Bytes total;
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i] == nullptr || infos_[i].queued) continue;
    total = total + driver_->session().resident(infos_[i].id);
  }
  return total;
}

}  // namespace bubblesim::schedule
