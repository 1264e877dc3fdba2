// GPipe (arXiv 1811.06965): all forwards, then all backwards, in the same order as PyTorch's
// ScheduleGPipe; the paper draws backwards in reverse, which changes no time and no peak.
#include "sim/pipeline/generators/generators.hpp"
#include "sim/pipeline/generators/rank_list.hpp"

namespace bubblesim::pipeline {

Result<PlannedSchedule> make_gpipe(const ScheduleRequest& request) {
  PlannedSchedule plan =
      one_stage_a_rank(request, chain_graph(request.ranks, request.micro_batches));
  for (std::uint32_t rank = 0; rank < request.ranks; ++rank) {
    RankList list(plan.graph);
    while (list.has_forward(rank)) list.forward(rank);
    while (list.has_backward(rank)) list.backward(rank);
    plan.schedule.actions[rank] = list.take();
  }
  return plan;
}

}  // namespace bubblesim::pipeline
