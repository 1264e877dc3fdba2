// Which GPUs of a cluster can take a fill job. Jobs of finite work run one after another on a GPU,
// so a GPU that has one takes no other. Instances of services run for ever and take no slot.
#pragma once

#include <cstdint>
#include <map>

#include "sim/policy/placement.hpp"

namespace bubblesim::policies {

class JobSlots {
 public:
  [[nodiscard]] bool can_take(const policy::GpuState& gpu, const policy::JobInfo& job) const {
    if (job.work == Duration{}) return true;
    const auto endless = endless_.find(gpu.id);
    return gpu.jobs <= (endless == endless_.end() ? 0 : endless->second);
  }
  /// The job was placed on the GPU.
  void place(const policy::JobInfo& job, GpuId gpu) {
    if (job.work == Duration{}) ++endless_[gpu];
  }

 private:
  std::map<GpuId, std::uint32_t> endless_;  ///< instances placed on each GPU
};

}  // namespace bubblesim::policies
