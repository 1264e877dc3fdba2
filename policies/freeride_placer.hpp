// FreeRide's manager: side tasks queue at the GPU (pipeline stage) whose headroom is more than
// their memory, where the queue is shortest; then the one with more headroom, then the lowest
// number. A task of unknown memory goes where headroom is largest. A GPU works off its queue, one
// task after another. Headroom: what training's peak leaves of the device. Endless tasks
// (instances of services) are placed by the same rule, and block no queue.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>

#include "sim/policy/placement.hpp"

namespace bubblesim::policies {

class FreeRidePlacer final : public policy::Placer {
 public:
  std::vector<policy::Placement> place(std::span<const policy::JobInfo> waiting,
                                       std::span<const policy::GpuState> gpus,
                                       policy::Instant now) override;
  void add_counts(CounterSet& counters) const override;

 private:
  struct Queue {
    Bytes headroom;
    std::deque<std::uint32_t> jobs;  ///< assigned and not placed
    std::uint32_t endless = 0;
  };

  [[nodiscard]] const policy::GpuState* choose(const policy::JobInfo& job,
                                               std::span<const policy::GpuState> gpus);
  Queue& queue_of(const policy::GpuState& gpu);

  std::map<GpuId, Queue> queues_;
  std::set<std::uint32_t> assigned_;
  std::set<std::uint32_t> nowhere_;  ///< jobs with more memory than any headroom
};

}  // namespace bubblesim::policies
