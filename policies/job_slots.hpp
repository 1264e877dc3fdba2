// GPUs of a cluster that are free for a fill job of finite work: those that have none. Such jobs
// run one after another on a GPU; instances that serve for ever do not count.
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
