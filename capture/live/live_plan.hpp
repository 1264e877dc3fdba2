// Whether a policy can decide over unmodified programs, and how they then share the GPU.
//
// Such programs give no measured bubbles, no profiles of kernels, and marks of iterations only if
// they call bubblesim_iteration. A policy cannot change their slices, stream priorities, kernels or
// memory, evict blocks, or limit SMs other than by MPS's percentage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/control/job_environment.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::capture {

/// The word for a LivePlan's sharing in messages and reports.
[[nodiscard]] const char* live_sharing_name(policy::SharingMode sharing);

/// The user's choice of what to do if the policy's sharing is not possible.
enum class Substitute : std::uint8_t { kRefuse, kTimeSliced };

struct LivePlan {
  /// kTimeSliced, by the driver's time slices, or kMps, as clients of a private MPS daemon: two
  /// processes can share a GPU in no other way.
  policy::SharingMode sharing = policy::SharingMode::kTimeSliced;
  std::vector<policy::ClientSharing> shares;  ///< by client
  /// Training waits for verdicts too: the policy may hold it.
  bool asks_training = false;
  std::vector<std::string> notes;             ///< where the plan departs from the policy, a
                                              ///< sentence each
  std::string warning;  ///< message before a filler starts; may be empty
};

/// Limits the memory of each filler that neither the policy nor `inherited` limits, to `free` less
/// a tenth. Notes the limit, or why there is none: no MPS, or free memory is not known.
void limit_fillers(LivePlan& plan, std::optional<Bytes> free, bool inherited);

/// Why a policy with these parameters cannot decide over live programs; empty: it can. Needs no
/// policy object.
[[nodiscard]] std::string why_not_live(const policy::PolicySpec& spec,
                                       const policy::ParameterSet& parameters);

/// Starts the policy (policy::start_policy) for `clients` and plans their sharing. Faults, with the
/// policy's name: why_not_live; an illegal decision; a sharing that two processes cannot have; a
/// filler that is not admitted.
[[nodiscard]] Result<LivePlan> plan_live(const policy::PolicySpec& spec,
                                         const policy::ParameterSet& parameters,
                                         policy::Policy& policy, const policy::GpuInfo& gpu,
                                         const std::vector<policy::ClientInfo>& clients,
                                         Substitute substitute);

// Facts for policies about the GPU on which two programs run.

struct GpuFacts {
  policy::GpuInfo gpu;
  std::string text;  ///< where the facts are from, a sentence
  bool is_only_one = true;    ///< programs see no other GPU, as far as the driver says
  std::optional<Bytes> free;  ///< memory that no process has; nothing: the driver does not say
};

/// Name, SMs and memory come from NVML; the rest, and what NVML does not say, from `constants`. The
/// card is `device` (UUID or index), if empty the first that CUDA_VISIBLE_DEVICES of `environment`
/// names, else number 0 as nvidia-smi counts. Priorities do not change: the gate cannot do it.
[[nodiscard]] GpuFacts facts_of_gpu(const policy::GpuInfo& constants, const std::string& device,
                                    const Variables& environment,
                                    const std::string& nvml = "libnvidia-ml.so.1");

}  // namespace bubblesim::capture
