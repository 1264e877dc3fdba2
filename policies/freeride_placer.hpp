// FreeRide's manager (scheduler_v1.py:365-394). A side task queues at a GPU (pipeline stage) whose
// headroom exceeds the task's memory: at the one with the shortest queue, or, if the task's memory
// is not known, at the one of largest headroom, then with the shortest queue. Ties go to the lowest
// number. Each GPU runs the tasks of its queue one after another. Headroom is the device memory
// that training's peak leaves free. Endless tasks (instances of services) are placed by the same
// rule, but block no queue.
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
    std::deque<std::uint32_t> jobs;  ///< assigned to this GPU and not placed yet
    std::uint32_t endless = 0;       ///< endless tasks placed here
  };

  [[nodiscard]] const policy::GpuState* choose(const policy::JobInfo& job,
                                               std::span<const policy::GpuState> gpus);
  Queue& queue_of(const policy::GpuState& gpu);

  std::map<GpuId, Queue> queues_;
  std::set<std::uint32_t> assigned_;
  std::set<std::uint32_t> nowhere_;  ///< jobs with more memory than any headroom
};

}  // namespace bubblesim::policies
