#include "sim/app/advise_practice.hpp"

#include "capture/live/live_plan.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/measure/measure.hpp"
#include "sim/policy/session/start.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/schedule/policy_terms.hpp"

namespace bubblesim::app {
namespace {

constexpr const char* kDeviceToldToFill = "h100";  // what `fill` takes where no driver is

CheckedResult<void> check_measured(const std::string& run_config, std::uint32_t rank,
                                   const AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const run::RunConfig config,
                             run::parse_run_config(run_config, "advice", context.policies));
  BUBBLESIM_ASSIGN_OR_RETURN(const run::LoadedRun loaded,
                             run::load_run(config, context.device_folder()));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto lone, run::lone_rank(loaded, rank));
  Errors faults = measure::check_measurable(lone, context.policies, {});
  if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
  return {};
}

Result<void> check_filled(const advise::Proposal& proposal, policy::Role filler,
                          const AppContext& context) {
  const policy::ParameterSet parameters = advise::parameters_of(proposal);
  const auto gpu = hardware::find_gpu_spec(kDeviceToldToFill, context.device_folder());
  if (!gpu) return tl::make_unexpected(gpu.error().front());
  std::vector<policy::ClientInfo> clients(2);
  clients[0].name = "training";
  clients[1].id = ClientId{1};
  clients[1].name = "filler";
  clients[1].role = filler;
  BUBBLESIM_ASSIGN_OR_RETURN(const std::unique_ptr<policy::Policy> policy,
                             policy::make_policy(*proposal.policy, parameters));
  BUBBLESIM_RETURN_IF_ERROR(capture::plan_live(*proposal.policy, parameters, *policy,
                                               schedule::gpu_info(*gpu, schedule::DrivenBy::kGate),
                                               clients, capture::Substitute::kRefuse));
  return {};
}

}  // namespace

std::string why_not_measured(const std::string& run_config, std::uint32_t rank,
                             const AppContext& context) {
  const auto checked = check_measured(run_config, rank, context);
  return checked ? std::string() : checked.error().front().message;
}

std::string why_not_filled(const advise::Proposal& proposal, policy::Role filler,
                           const AppContext& context) {
  const auto checked = check_filled(proposal, filler, context);
  return checked ? std::string() : checked.error().message;
}

}  // namespace bubblesim::app
