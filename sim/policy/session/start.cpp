#include "sim/policy/session/start.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "sim/base/units.hpp"
#include "sim/policy/session/call_mark.hpp"
#include "sim/policy/session/catch_thrown.hpp"

namespace bubblesim::policy {
namespace {

tl::unexpected<Error> illegal(const PolicySpec& spec, const std::string& reason) {
  return fail({}, "policy " + spec.name, "illegal decision at the start: " + reason);
}

Result<void> check_sharing(const PolicySpec& spec, const Sharing& sharing) {
  if (sharing.mode > SharingMode::kLeftover) {
    return illegal(spec, "the unknown sharing mode " +
                             std::to_string(static_cast<unsigned>(sharing.mode)));
  }
  const bool bound =
      sharing.mode == SharingMode::kIdleOnly || sharing.mode == SharingMode::kLeftover;
  if (bound && !spec.oracle) {
    return illegal(spec, "fillers that cost nothing, which only an oracle may ask for");
  }
  if (sharing.mode != SharingMode::kTimeSliced) return {};
  if (sharing.slice && *sharing.slice <= Duration{}) {
    return illegal(spec, "a time slice of 0, allowed is above 0");
  }
  if (sharing.switch_cost && *sharing.switch_cost < Duration{}) {
    return illegal(spec, "a negative switch cost");
  }
  return {};
}

// A sum that stays at the largest number instead of wrapping around.
Bytes saturated_sum(Bytes a, Bytes b) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return {a.value > kMost - b.value ? kMost : a.value + b.value};
}

Bytes free_memory(Bytes used, const GpuInfo& gpu) {
  return {gpu.memory.value - std::min(used, gpu.memory).value};
}

// Rounding of shares of a whole must not refuse the last part of it.
constexpr double kSlack = 1e-9;

Result<void> check_memory_share(const PolicySpec& spec, const ClientInfo& client,
                                const ClientSharing& share, const Sharing& sharing) {
  if (sharing.mode != SharingMode::kPartitioned) return {};
  const bool allowed = share.memory_share >= 0 && share.memory_share <= 1 + kSlack;
  if (allowed) return {};  // NaN is not
  return illegal(spec, value_text(share.memory_share) + " of the memory for " + client.name +
                           ", allowed are 0 to 1");
}

/// What clients may still have of a partitioned GPU.
struct Unshared {
  std::uint32_t sms = 0;
  double memory_share = 1;
};

Result<void> check_share(const PolicySpec& spec, const ClientInfo& client,
                         const ClientSharing& share, const Sharing& sharing, Unshared& left) {
  if (share.sm_percentage < 1 || share.sm_percentage > 100) {
    return illegal(spec, std::to_string(share.sm_percentage) + " % of SMs for " + client.name +
                             ", allowed are 1 to 100");
  }
  if (share.slice && *share.slice <= Duration{}) {
    return illegal(spec, "a time slice of 0, allowed is above 0");
  }
  if (sharing.mode != SharingMode::kPartitioned) return {};
  if (share.sms == 0 || share.sms > left.sms || share.memory_share <= 0 ||
      share.memory_share > left.memory_share + kSlack) {
    return illegal(spec, std::to_string(share.sms) + " SMs and " +
                             std::to_string(share.memory_share) + " of the memory for " +
                             client.name + ", left are " + std::to_string(left.sms) + " and " +
                             std::to_string(left.memory_share));
  }
  left.sms -= share.sms;
  left.memory_share -= share.memory_share;
  return {};
}

/// What is wrong with the client's memory, apart from what the policy itself says. A GPU whose
/// memory is not known (0 bytes) refuses no client.
std::string memory_fault(const ClientInfo& client, const ClientSharing& share,
                         const Sharing& sharing, Bytes used, const GpuInfo& gpu) {
  if (client.memory_known && share.memory_limit && client.memory > *share.memory_limit) {
    return "needs " + format_bytes(client.memory) + ", may allocate " +
           format_bytes(*share.memory_limit);
  }
  if (sharing.mode == SharingMode::kPartitioned) {
    const Bytes part{static_cast<std::uint64_t>(static_cast<double>(gpu.memory.value) *
                                                share.memory_share)};
    if (!client.memory_known || gpu.memory == Bytes{} || client.memory <= part) return {};
    return "needs " + format_bytes(client.memory) + ", its partition has " + format_bytes(part);
  }
  const bool fits =
      gpu.memory == Bytes{} || saturated_sum(used, client.memory) <= gpu.memory;
  if (sharing.unified_memory || fits) return {};
  return "needs " + format_bytes(client.memory) + ", free are " +
         format_bytes(free_memory(used, gpu));
}

/// How much of the client's memory is on the device: what the policy says, or what there is room
/// for beside those before it.
Bytes resident_of(const ClientInfo& client, const ClientSharing& share, Bytes used,
                  const GpuInfo& gpu) {
  if (share.resident) return std::min(*share.resident, client.memory);
  if (gpu.memory == Bytes{}) return client.memory;
  return std::min(client.memory, free_memory(used, gpu));
}

Admission admission_of(Policy& policy, const ClientInfo& filler, const ClientSharing& share,
                       const Sharing& sharing, Bytes used, const GpuInfo& gpu) {
  Admission admission = policy.admit(filler, used, gpu);
  if (!admission.admitted) return admission;
  admission.reason = memory_fault(filler, share, sharing, used, gpu);
  admission.admitted = admission.reason.empty();
  return admission;
}

Result<StartDecisions> decide_start(const PolicySpec& spec, Policy& policy, const GpuInfo& gpu,
                                    const std::vector<ClientInfo>& clients) {
  StartDecisions out;
  out.sharing = policy.start(gpu, clients);
  BUBBLESIM_RETURN_IF_ERROR(check_sharing(spec, out.sharing));
  for (const ClientInfo& client : clients) {
    out.shares.push_back(policy.share(client));
    BUBBLESIM_RETURN_IF_ERROR(check_memory_share(spec, client, out.shares.back(), out.sharing));
  }
  Bytes used;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const ClientSharing& share = out.shares[i];
    out.admissions.push_back(
        i == 0 ? Admission{} : admission_of(policy, clients[i], share, out.sharing, used, gpu));
    out.resident.push_back(resident_of(clients[i], share, used, gpu));
    if (out.admissions[i].admitted && !clients[i].queued) {
      used = saturated_sum(used, clients[i].memory);
    }
  }
  Unshared left{gpu.sm_count, 1};
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (!out.admissions[i].admitted) continue;  // it has no part of the GPU
    BUBBLESIM_RETURN_IF_ERROR(check_share(spec, clients[i], out.shares[i], out.sharing, left));
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<Policy>> make_policy(const PolicySpec& spec,
                                            const ParameterSet& parameters) {
  return catch_thrown(spec, [&]() -> Result<std::unique_ptr<Policy>> {
    CallMark mark(spec.name);
    const CallMark::Call marked(mark, "make", {});
    auto policy = spec.make(parameters);
    if (policy == nullptr) return fail({}, "policy " + spec.name, "its library made no policy");
    return policy;
  });
}

Result<StartDecisions> start_policy(const PolicySpec& spec, Policy& policy, const GpuInfo& gpu,
                                    const std::vector<ClientInfo>& clients) {
  return catch_thrown(spec, [&] {
    CallMark mark(spec.name);
    const CallMark::Call marked(mark, "start, share or admit", {});
    return decide_start(spec, policy, gpu, clients);
  });
}

}  // namespace bubblesim::policy
