// 1F1B, or PipeDream-flush (arXiv 2006.09503; 2104.04473, section 2.2): rank r of p runs
// min(p-1-r, m) forwards, then one forward and one backward in turn, then the backwards left.
#include <algorithm>

#include "sim/pipeline/generators/generators.hpp"
#include "sim/pipeline/generators/rank_list.hpp"

namespace bubblesim::pipeline {

Result<PlannedSchedule> make_1f1b(const ScheduleRequest& request) {
  PlannedSchedule plan =
      one_stage_a_rank(request, chain_graph(request.ranks, request.micro_batches));
  for (std::uint32_t rank = 0; rank < request.ranks; ++rank) {
    RankList list(plan.graph);
    const std::uint32_t warm_up = std::min(request.ranks - 1 - rank, request.micro_batches);
    for (std::uint32_t i = 0; i < warm_up; ++i) list.forward(rank);
    while (list.has_backward(rank)) {
      if (list.has_forward(rank)) list.forward(rank);
      list.backward(rank);
    }
    plan.schedule.actions[rank] = list.take();
  }
  return plan;
}

}  // namespace bubblesim::pipeline
