// What a policy decides before the start, checked and put into the GPU's terms.
#include <algorithm>
#include <limits>

#include "sim/base/units.hpp"
#include "sim/schedule/policy_driver.hpp"
#include "sim/schedule/policy_terms.hpp"

namespace bubblesim::schedule {
namespace {

tl::unexpected<Error> illegal(const policy::PolicySpec& spec, const std::string& reason) {
  return fail({}, "policy " + spec.name, "illegal decision at the start: " + reason);
}

Result<gpu::SharingSetup> sharing_of(const policy::PolicySpec& spec,
                                     const policy::Sharing& sharing,
                                     const hardware::GpuSpec& gpu) {
  const gpu::SharingSetup setup = gpu_sharing(sharing, gpu);
  const bool bound = setup.mode == program::SharingMode::kIdleOnly ||
                     setup.mode == program::SharingMode::kLeftover;
  if (bound && !spec.oracle) {
    return illegal(spec, "fillers that cost nothing, which only an oracle may ask for");
  }
  if (setup.mode != program::SharingMode::kTimeSliced) return setup;
  if (setup.slice <= Duration{}) return illegal(spec, "a time slice of 0, allowed is above 0");
  if (setup.switch_cost < Duration{}) return illegal(spec, "a negative switch cost");
  return setup;
}

// A sum that stays at the largest number instead of wrapping around.
Bytes add(Bytes a, Bytes b) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return {a.value > kMost - b.value ? kMost : a.value + b.value};
}

// 0 bytes of device memory: not known, so nobody is refused for it.
bool fits(Bytes total, const hardware::GpuSpec& gpu) {
  return gpu.memory == Bytes{} || total <= gpu.memory;
}

/// One client's setup; what it may hold of a partitioned GPU is taken from `left`.
struct Left {
  std::uint32_t sms = 0;
  double memory_share = 1;
};

Result<gpu::ClientSetup> client_setup(const policy::PolicySpec& spec,
                                      const policy::ClientInfo& client,
                                      const policy::ClientSharing& share,
                                      const policy::Sharing& sharing,
                                      const hardware::GpuSpec& gpu, Left& left) {
  if (share.sm_percentage < 1 || share.sm_percentage > 100) {
    return illegal(spec, std::to_string(share.sm_percentage) + " % of SMs for " + client.name +
                             ", allowed are 1 to 100");
  }
  if (share.slice && *share.slice <= Duration{}) {
    return illegal(spec, "a time slice of 0, allowed is above 0");
  }
  const gpu::ClientSetup setup = gpu_client(client.name, share, sharing, gpu);
  if (sharing.mode != program::SharingMode::kPartitioned) return setup;
  // Rounding of shares of a whole must not refuse the last part of it.
  constexpr double kSlack = 1e-9;
  if (share.sms == 0 || share.sms > left.sms || share.memory_share <= 0 ||
      share.memory_share > left.memory_share + kSlack) {
    return illegal(spec, std::to_string(share.sms) + " SMs and " +
                             std::to_string(share.memory_share) + " of the memory for " +
                             client.name + ", left are " + std::to_string(left.sms) + " and " +
                             std::to_string(left.memory_share));
  }
  left.sms -= share.sms;
  left.memory_share -= share.memory_share;
  return setup;
}

/// What is wrong with the client's memory, apart from what the policy itself says.
std::string memory_fault(const policy::ClientInfo& client, const policy::ClientSharing& share,
                         const policy::Sharing& sharing, Bytes used,
                         const hardware::GpuSpec& gpu) {
  if (client.memory_known && share.memory_limit && client.memory > *share.memory_limit) {
    return "needs " + format_bytes(client.memory) + ", may allocate " +
           format_bytes(*share.memory_limit);
  }
  if (sharing.mode == program::SharingMode::kPartitioned) {
    const Bytes part{static_cast<std::uint64_t>(static_cast<double>(gpu.memory.value) *
                                                share.memory_share)};
    if (!client.memory_known || gpu.memory == Bytes{} || client.memory <= part) return {};
    return "needs " + format_bytes(client.memory) + ", its partition has " + format_bytes(part);
  }
  if (sharing.unified_memory || fits(add(used, client.memory), gpu)) return {};
  return "needs " + format_bytes(client.memory) + ", free are " +
         format_bytes({gpu.memory.value - std::min(used, gpu.memory).value});
}

/// How much of the client's memory is on the device: what the policy says, or what there is room
/// for beside those before it.
Bytes resident_of(const policy::ClientInfo& client, const policy::ClientSharing& share, Bytes used,
                  const hardware::GpuSpec& gpu) {
  if (share.resident) return std::min(*share.resident, client.memory);
  if (gpu.memory == Bytes{}) return client.memory;
  return std::min(client.memory, Bytes{gpu.memory.value - std::min(used, gpu.memory).value});
}

}  // namespace

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
  return setup;
}

gpu::ClientSetup gpu_client(const std::string& name, const policy::ClientSharing& share,
                            const policy::Sharing& sharing, const hardware::GpuSpec& gpu) {
  gpu::ClientSetup setup;
  setup.name = name;
  setup.priority = share.priority;
  setup.sm_cap = share.sms > 0 ? share.sms : sm_cap(share.sm_percentage, gpu);
  setup.slice = share.slice.value_or(Duration{});
  if (sharing.mode == program::SharingMode::kPartitioned) {
    setup.bandwidth = std::min(1.0, share.memory_share);
  }
  return setup;
}

GpuPlan plan_without_policy(const std::vector<policy::ClientInfo>& clients) {
  GpuPlan plan;
  for (const policy::ClientInfo& client : clients) {
    plan.clients.push_back({.name = client.name});
    plan.resident.push_back(client.memory);
  }
  plan.admissions.resize(clients.size());
  return plan;
}

Result<GpuPlan> plan_gpu(const policy::PolicySpec& spec, policy::Policy& policy,
                         const hardware::GpuSpec& gpu,
                         const std::vector<policy::ClientInfo>& clients) {
  GpuPlan plan;
  const policy::GpuInfo info = gpu_info(gpu);
  const policy::Sharing sharing = policy.start(info, clients);
  plan.unified_memory = sharing.unified_memory;
  BUBBLESIM_ASSIGN_OR_RETURN(plan.sharing, sharing_of(spec, sharing, gpu));
  std::vector<policy::ClientSharing> shares;
  for (const policy::ClientInfo& client : clients) shares.push_back(policy.share(client));
  Bytes used;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    policy::Admission admission;
    if (i > 0) admission = policy.admit(clients[i], used, info);
    if (admission.admitted && i > 0) {
      admission.reason = memory_fault(clients[i], shares[i], sharing, used, gpu);
      admission.admitted = admission.reason.empty();
    }
    plan.resident.push_back(resident_of(clients[i], shares[i], used, gpu));
    if (admission.admitted && !clients[i].queued) used = add(used, clients[i].memory);
    plan.admissions.push_back(std::move(admission));
  }
  Left left{gpu.sm_count, 1};
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (!plan.admissions[i].admitted) {  // it has no part of the GPU
      plan.clients.push_back({.name = clients[i].name});
      continue;
    }
    BUBBLESIM_ASSIGN_OR_RETURN(
        gpu::ClientSetup setup,
        client_setup(spec, clients[i], shares[i], sharing, gpu, left));
    plan.clients.push_back(std::move(setup));
  }
  plan.decided = sharing;
  plan.decided_shares = std::move(shares);
  return plan;
}

}  // namespace bubblesim::schedule
