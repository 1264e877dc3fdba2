// Whether a GPU can do what a config asks for: everything that is known before anything starts.
#include <memory>
#include <utility>

#include "sim/measure/arm.hpp"
#include "sim/measure/job_plans.hpp"
#include "sim/measure/measure.hpp"
#include "sim/policy/session/start.hpp"
#include "sim/schedule/gpu_plan.hpp"

namespace bubblesim::measure {
namespace {

Result<void> check_policy(const run::LoadedRun& lone, const run::PolicyChoice& choice,
                          const policy::Registry& registry, const capture::RigPlace& place) {
  BUBBLESIM_ASSIGN_OR_RETURN(const policy::PolicySpec* spec, registry.find(choice.name));
  Arm arm;
  arm.policy = spec;
  for (std::uint32_t i = 0; i < lone.config.fillers.size(); ++i) arm.fillers.push_back(i);
  BUBBLESIM_ASSIGN_OR_RETURN(const std::unique_ptr<policy::Policy> policy,
                             policy::make_policy(*spec, choice.parameters));
  const std::vector<policy::ClientInfo> clients = client_infos(lone, arm, {});
  BUBBLESIM_ASSIGN_OR_RETURN(const schedule::GpuPlan plan,
                             schedule::plan_gpu(*spec, *policy, lone.device, clients,
                                                schedule::DrivenBy::kGate));
  BUBBLESIM_RETURN_IF_ERROR(substrate_of(*spec, plan.decided, clients, lone.device, place));
  return {};
}

}  // namespace

Errors check_measurable(const run::LoadedRun& lone, const policy::Registry& registry,
                        const capture::RigPlace& place) {
  Errors faults;
  const auto note = [&faults](const auto& result) {
    if (!result) faults.push_back(result.error());
  };
  if (lone.config.precision) {
    faults.push_back({lone.config.file, "/duration",
                      "found \"auto\"; expected a span: nobody can say of a GPU beforehand how "
                      "long it would take"});
  }
  if (lone.config.power) {
    faults.push_back({lone.config.file, "/power",
                      "a GPU's cap and clock are set by its administrator (nvidia-smi -pl, -lgc), "
                      "and nothing is metered here; expected no such key"});
  }
  if (!lone.config.training.faults.empty()) {
    faults.push_back({lone.config.file, "/training/faults",
                      "nobody stops a job on a real GPU here; expected none"});
  }
  // Arrivals are drawn for the run itself; one that has no end says so here too.
  const PlanSetup setup{.length = std::chrono::milliseconds(1)};
  note(training_plan(lone, setup));
  for (std::uint32_t i = 0; i < lone.config.fillers.size(); ++i) {
    note(filler_plan(lone, i, ClientId{i + 1}, setup));
  }
  for (const run::PolicyChoice& choice : lone.config.policies) {
    note(check_policy(lone, choice, registry, place));
  }
  return faults;
}

}  // namespace bubblesim::measure
