// DualPipeV (github.com/deepseek-ai/DualPipe, dualpipev.py; PyTorch's ScheduleDualPipeV): one
// copy of the model in 2p stages, rank r of p holding stages r and 2p-1-r.
#include <string>

#include "sim/pipeline/generators/dual_steps.hpp"
#include "sim/pipeline/generators/generators.hpp"
#include "sim/pipeline/generators/rank_list.hpp"

namespace bubblesim::pipeline {

Result<PlannedSchedule> make_dualpipev(const ScheduleRequest& request) {
  const std::uint32_t p = request.ranks;
  if (request.micro_batches < 2 * p) {
    return fail("dualpipev: found " + std::to_string(request.micro_batches) +
                " micro-batches on " + std::to_string(p) + " ranks; expected at least " +
                std::to_string(2 * p) + "; nearest: " + std::to_string(2 * p));
  }
  PlannedSchedule plan = two_stages_a_rank(request, chain_graph(2 * p, request.micro_batches));
  for (std::uint32_t rank = 0; rank < p; ++rank) {
    plan.schedule.actions[rank] = dual_actions(
        plan.graph, {p, rank, rank, 2 * p - 1 - rank, request.micro_batches});
  }
  return plan;
}

}  // namespace bubblesim::pipeline
