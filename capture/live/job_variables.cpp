#include "capture/live/job_variables.hpp"

#include <algorithm>
#include <cstddef>

#include "capture/live/live_folder.hpp"
#include "sim/base/number_text.hpp"

namespace bubblesim::capture {
namespace {

constexpr const char* kPreload = "LD_PRELOAD";
constexpr const char* kMpsDirectory = "CUDA_MPS_PIPE_DIRECTORY";
constexpr const char* kNoMps = "/nonexistent/bubblesim-no-mps";

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

/// "0,1" of two GPUs, each with the suffix.
std::string numbered(std::ptrdiff_t gpus, const std::string& suffix = {}) {
  std::string text = "0" + suffix;
  for (std::ptrdiff_t i = 1; i < gpus; ++i) text += "," + std::to_string(i) + suffix;
  return text;
}

/// A daemon numbers the GPUs that its CUDA_VISIBLE_DEVICES shows it from 0, and its clients count
/// by that: "2,3", with which both were started, is "0,1" to a client. UUIDs stay.
void renumber_gpus(Variables& variables) {
  const auto shown = variables.find(kVisible);
  if (shown == variables.end() || shown->second.empty()) return;
  if (shown->second[0] < '0' || shown->second[0] > '9') return;
  shown->second = numbered(1 + std::ranges::count(shown->second, ','));
}

std::string limit_text(const Variables& variables, Bytes limit) {
  const auto shown = variables.find(kVisible);
  const auto gpus = shown == variables.end() ? 1 : 1 + std::ranges::count(shown->second, ',');
  return numbered(gpus, "=" + std::to_string(limit.value >> 20U) + "M");
}

void set_mps(Variables& variables, const GatedJob& job, const LivePlan& plan) {
  variables[kMpsDirectory] = job.mps_directory;
  renumber_gpus(variables);
  const policy::ClientSharing& share = plan.shares[job.client];
  if (share.memory_limit) variables[kMpsMemoryLimit] = limit_text(variables, *share.memory_limit);
  if (share.sm_percentage < 100) {
    variables["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(share.sm_percentage);
  }
  // MPS knows two priorities: 0, and 1 for those below.
  const auto highest = std::ranges::max(plan.shares, {}, &policy::ClientSharing::priority).priority;
  if (share.priority < highest) variables["CUDA_MPS_CLIENT_PRIORITY"] = "1";
}

}  // namespace

Variables gated_environment(const Variables& inherited, const GatedJob& job,
                            const LivePlan& plan) {
  Variables variables = inherited;
  std::string& preload = variables[kPreload];
  preload = preload.empty() ? job.library : job.library + ":" + preload;
  if (!job.device.empty()) {
    variables[kVisible] = job.device;
    // An index is nvidia-smi's, as in the environment of the daemon.
    if (!job.device.starts_with("GPU-")) variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  }
  variables[kEnvGate] = job.gates;
  variables[kEnvGateClient] = std::to_string(job.client);
  variables[kEnvGateFolder] = job.folders;
  variables[kEnvGateCompletions] = job.completions ? "1" : "0";
  std::erase_if(variables, [](const auto& entry) {
    return entry.first.starts_with("CUDA_MPS_") && entry.first != kMpsMemoryLimit;
  });
  if (plan.sharing == policy::SharingMode::kMps) {
    set_mps(variables, job, plan);
  } else {
    variables[kMpsDirectory] = kNoMps;
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
