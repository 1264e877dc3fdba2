// A policy's decisions before the start, translated into settings of the GPU model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"
#include "sim/policy/session/start.hpp"
#include "sim/schedule/policy_terms.hpp"

namespace bubblesim::schedule {

struct GpuPlan {
  policy::StartDecisions decided;  ///< the decisions themselves
  gpu::SharingSetup sharing;
  std::vector<gpu::ClientSetup> clients;  ///< by policy client; refused ones are left out
};

/// Asks the policy for its decisions before the start; checks them.
[[nodiscard]] Result<GpuPlan> plan_gpu(const policy::PolicySpec& spec, policy::Policy& policy,
                                       const hardware::GpuSpec& gpu,
                                       const std::vector<policy::ClientInfo>& clients,
                                       DrivenBy by = DrivenBy::kSimulator);

/// The plan without a policy: one context, all clients admitted, all memory on the device.
[[nodiscard]] GpuPlan plan_without_policy(const std::vector<policy::ClientInfo>& clients);

/// Translates legal decisions into settings of the GPU model.
[[nodiscard]] gpu::SharingSetup gpu_sharing(const policy::Sharing& sharing,
                                            const hardware::GpuSpec& gpu);
[[nodiscard]] gpu::ClientSetup gpu_client(const std::string& name,
                                          const policy::ClientSharing& share,
                                          const policy::Sharing& sharing,
                                          const hardware::GpuSpec& gpu);

/// SMs of a client at this MPS active-thread percentage: whole TPCs, at least one (research: an
/// 82-SM RTX 3090 at 50 % gives 40 SMs, not 41).
[[nodiscard]] std::uint32_t sm_cap(std::uint32_t percentage, const hardware::GpuSpec& gpu);

}  // namespace bubblesim::schedule
