#include "policies/launch_polls.hpp"

#include "sim/base/units.hpp"

namespace bubblesim::policies {

void LaunchPolls::find_earliest() {
  earliest_.reset();
  for (const Waiting& thread : waiting_) {
    if (!earliest_ || thread.wakes < *earliest_) earliest_ = thread.wakes;
  }
}

policy::Admission admit_with_reserve(const policy::ClientInfo& filler, Bytes used, Bytes reserve,
                                     const policy::GpuInfo& gpu) {
  if (!filler.memory_known || gpu.memory == Bytes{}) return {};
  if (used + filler.memory + reserve <= gpu.memory) return {};
  return {false, "needs " + format_bytes(filler.memory) + " beside " + format_bytes(used) +
                     " in use and " + format_bytes(reserve) + " kept free, the GPU has " +
                     format_bytes(gpu.memory)};
}

}  // namespace bubblesim::policies
