// Naive model parallel: a micro-batch goes through all stages and back before the next starts.
#include "sim/pipeline/generators/generators.hpp"
#include "sim/pipeline/generators/rank_list.hpp"

namespace bubblesim::pipeline {

Result<PlannedSchedule> make_sequential(const ScheduleRequest& request) {
  PlannedSchedule plan =
      one_stage_a_rank(request, chain_graph(request.ranks, request.micro_batches));
  for (std::uint32_t rank = 0; rank < request.ranks; ++rank) {
    RankList list(plan.graph);
    while (list.has_forward(rank)) {
      list.forward(rank);
      list.backward(rank);
    }
    plan.schedule.actions[rank] = list.take();
  }
  return plan;
}

}  // namespace bubblesim::pipeline
