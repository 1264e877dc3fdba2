// The collectives of a simulation's training job, to its conductor: GPUs may run on their own until
// one of them can be complete. Ranks that arrive before the last one arrive unseen, and are told
// of when the window is over.
#pragma once

#include <memory>
#include <vector>

#include "sim/engine/conductor.hpp"
#include "sim/network/rendezvous.hpp"
#include "sim/run/gpu_node.hpp"

namespace bubblesim::run {

class JobMeetings final : public engine::JointContact {
 public:
  /// `nodes` in the order of their domains; both outlive this.
  JobMeetings(const std::vector<std::unique_ptr<GpuNode>>& nodes, network::Rendezvous& rendezvous)
      : nodes_(nodes), rendezvous_(rendezvous) {}

  [[nodiscard]] SimTime next_completion(SimTime now) override;
  void after_window() override;

 private:
  const std::vector<std::unique_ptr<GpuNode>>& nodes_;
  network::Rendezvous& rendezvous_;
  std::vector<workload::NextMeeting> next_;
  std::vector<network::Arrival> arrivals_;
};

}  // namespace bubblesim::run
