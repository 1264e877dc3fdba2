#include "sim/schedule/gpu_plan.hpp"

#include <algorithm>
#include <cstddef>

namespace bubblesim::schedule {

std::uint32_t sm_cap(std::uint32_t percentage, const hardware::GpuSpec& gpu) {
  if (percentage >= 100) return gpu::kAllSms;
  const std::uint32_t unit = std::max<std::uint32_t>(1, gpu.tpc_sms);
  const std::uint64_t units = std::uint64_t{gpu.sm_count} * percentage / (100ULL * unit);
  return std::max<std::uint32_t>(unit, static_cast<std::uint32_t>(units) * unit);
}

gpu::SharingSetup gpu_sharing(const policy::Sharing& sharing, const hardware::GpuSpec& gpu) {
  gpu::SharingSetup setup;
  setup.mode = sharing.mode;
  if (setup.mode != program::SharingMode::kTimeSliced) return setup;
  setup.slice = sharing.slice.value_or(gpu.time_slice);
  setup.switch_cost = sharing.switch_cost.value_or(gpu.context_switch);
  setup.others_share = sharing.fillers_share;
  if (sharing.switch_cost || !gpu.context_switch_empty) return setup;
  setup.empty_switch = std::min(*gpu.context_switch_empty, setup.switch_cost);
  return setup;
}

gpu::ClientSetup gpu_client(const std::string& name, const policy::ClientSharing& share,
                            const policy::Sharing& sharing, const hardware::GpuSpec& gpu) {
  gpu::ClientSetup setup;
  setup.name = name;
  setup.priority = share.priority;
  setup.sm_cap = share.sms > 0 ? share.sms : sm_cap(share.sm_percentage, gpu);
  setup.slice = share.slice.value_or(Duration{});
  if (sharing.mode == policy::SharingMode::kPartitioned) {
    setup.bandwidth = std::min(1.0, share.memory_share);
  }
  return setup;
}

GpuPlan plan_without_policy(const std::vector<policy::ClientInfo>& clients) {
  GpuPlan plan;
  for (const policy::ClientInfo& client : clients) {
    plan.clients.push_back({.name = client.name});
    plan.decided.resident.push_back(client.memory);
  }
  plan.decided.shares.resize(clients.size());
  plan.decided.admissions.resize(clients.size());
  return plan;
}

Result<GpuPlan> plan_gpu(const policy::PolicySpec& spec, policy::Policy& policy,
                         const hardware::GpuSpec& gpu,
                         const std::vector<policy::ClientInfo>& clients, DrivenBy by) {
  GpuPlan plan;
  BUBBLESIM_ASSIGN_OR_RETURN(
      plan.decided, policy::start_policy(spec, policy, gpu_info(gpu, by), clients));
  const policy::Sharing& sharing = plan.decided.sharing;
  plan.sharing = gpu_sharing(sharing, gpu);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const std::string& name = clients[i].name;
    plan.clients.push_back(plan.decided.admissions[i].admitted
                               ? gpu_client(name, plan.decided.shares[i], sharing, gpu)
                               : gpu::ClientSetup{.name = name});
  }
  return plan;
}

}  // namespace bubblesim::schedule
