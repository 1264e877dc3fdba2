// What a policy decides before the start, checked and put into the GPU's terms.
#include <algorithm>
#include <limits>

#include "sim/base/units.hpp"
#include "sim/schedule/policy_driver.hpp"

namespace bubblesim::schedule {
namespace {

tl::unexpected<Error> illegal(const policy::PolicySpec& spec, const std::string& reason) {
  return fail({}, "policy " + spec.name, "illegal decision at the start: " + reason);
}

policy::GpuInfo describe(const hardware::GpuSpec& gpu) {
  return {gpu.name, gpu.sm_count, gpu.tpc_sms, gpu.memory, gpu.time_slice, gpu.context_switch};
}

Result<gpu::SharingSetup> sharing_of(const policy::PolicySpec& spec,
                                     const policy::Sharing& sharing,
                                     const hardware::GpuSpec& gpu) {
  gpu::SharingSetup setup;
  if (sharing.mode == policy::Sharing::Mode::kSpatial) return setup;
  setup.mode = gpu::SharingMode::kTimeSliced;
  setup.slice = sharing.slice.value_or(gpu.time_slice);
  setup.switch_cost = sharing.switch_cost.value_or(gpu.context_switch);
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

}  // namespace

std::uint32_t sm_cap(std::uint32_t percentage, const hardware::GpuSpec& gpu) {
  if (percentage >= 100) return gpu::kAllSms;
  const std::uint32_t unit = std::max<std::uint32_t>(1, gpu.tpc_sms);
  const std::uint64_t units = std::uint64_t{gpu.sm_count} * percentage / (100ULL * unit);
  return std::max<std::uint32_t>(unit, static_cast<std::uint32_t>(units) * unit);
}

Result<GpuPlan> plan_gpu(const policy::PolicySpec& spec, policy::Policy& policy,
                         const hardware::GpuSpec& gpu,
                         const std::vector<policy::ClientInfo>& clients) {
  GpuPlan plan;
  const policy::GpuInfo info = describe(gpu);
  const policy::Sharing sharing = policy.start(info, clients);
  plan.unified_memory = sharing.unified_memory;
  BUBBLESIM_ASSIGN_OR_RETURN(plan.sharing, sharing_of(spec, sharing, gpu));
  Bytes used;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const policy::ClientSharing share = policy.share(clients[i]);
    if (share.sm_percentage < 1 || share.sm_percentage > 100) {
      return illegal(spec, std::to_string(share.sm_percentage) +
                               " % of SMs for " + clients[i].name + ", allowed are 1 to 100");
    }
    plan.clients.push_back(
        {clients[i].name, share.priority, sm_cap(share.sm_percentage, gpu)});
  }
  for (std::size_t i = 0; i < clients.size(); ++i) {
    policy::Admission admission;
    if (i > 0) admission = policy.admit(clients[i], used, info);
    const Bytes total = add(used, clients[i].memory);
    if (admission.admitted && i > 0 && !sharing.unified_memory && !fits(total, gpu)) {
      admission = {false, "needs " + format_bytes(clients[i].memory) + ", free are " +
                              format_bytes({gpu.memory.value - std::min(used, gpu.memory).value})};
    }
    if (admission.admitted) used = total;
    plan.admissions.push_back(std::move(admission));
  }
  return plan;
}

}  // namespace bubblesim::schedule
