#include "capture/live/job_variables.hpp"

#include <algorithm>

#include "capture/live/live_folder.hpp"
#include "capture/substrate/process_environment.hpp"
#include "sim/base/number_text.hpp"

namespace bubblesim::capture {
namespace {

GpuShare share_of(const GatedJob& job, const LivePlan& plan) {
  GpuShare share;
  share.device = job.device;
  if (plan.sharing != policy::SharingMode::kMps) return share;
  const policy::ClientSharing& planned = plan.shares[job.client];
  share.mps_directory = job.mps_directory;
  share.place = job.place;
  share.sm_percentage = planned.sm_percentage;
  // MPS has two priorities: 0, and 1 for all lower ones.
  const auto highest = std::ranges::max(plan.shares, {}, &policy::ClientSharing::priority).priority;
  if (planned.priority < highest) share.priority = MpsPriority::kBelowNormal;
  return share;
}

}  // namespace

Variables gated_environment(const Variables& inherited, const GatedJob& job,
                            const LivePlan& plan) {
  Variables variables = inherited;
  std::string& preload = variables["LD_PRELOAD"];
  preload = preload.empty() ? job.library : job.library + ":" + preload;
  variables[kEnvGate] = job.gates;
  variables[kEnvGateClient] = std::to_string(job.client);
  variables[kEnvGateFolder] = job.folders;
  variables[kEnvGateCompletions] = job.completions ? "1" : "0";
  set_share(variables, share_of(job, plan));
  const auto limited = inherited.find(kMpsMemoryLimit);
  if (limited != inherited.end()) variables.insert(*limited);
  if (plan.sharing != policy::SharingMode::kMps) return variables;
  if (const auto limit = plan.shares[job.client].memory_limit) {
    variables[kMpsMemoryLimit] =
        numbered_gpus(variables, "=" + std::to_string(limit->value >> 20U) + "M");
  }
  return variables;
}

std::uint32_t ranks_of_job(const Variables& inherited) {
  for (const char* name : {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                           "SLURM_STEP_NUM_TASKS"}) {
    const auto found = inherited.find(name);
    if (found == inherited.end()) continue;
    const auto ranks = parse_number<std::uint32_t>(found->second);
    if (ranks && *ranks > 0) return *ranks;
  }
  return 1;
}

Result<void> can_be_preloaded(const std::string& library) {
  if (library.find_first_of(" :") == std::string::npos) return {};
  return fail(library, {}, "its path has a space or a colon, where the loader divides LD_PRELOAD; "
                           "copy it to another place and name it by --library");
}

}  // namespace bubblesim::capture
