// ZB-H1 and ZB-H2 (arXiv 2401.10241, section 2). With k = 1 or 2, rank r of p issues, at its
// step x, F of micro-batch x, I of x - k(p-1-r) and W of x - k(p-1), each where there is one: k
// sets how many forwards a rank may be ahead of its input gradients, and W fills what is left.
#include "sim/pipeline/generators/generators.hpp"
#include "sim/pipeline/generators/rank_list.hpp"

namespace bubblesim::pipeline {
namespace {

PlannedSchedule handcrafted(const ScheduleRequest& request, std::uint32_t k) {
  PlannedSchedule plan =
      one_stage_a_rank(request, chain_graph(request.ranks, request.micro_batches));
  const std::uint32_t m = request.micro_batches;
  const std::uint32_t weight_delay = k * (request.ranks - 1);
  for (std::uint32_t rank = 0; rank < request.ranks; ++rank) {
    RankList list(plan.graph);
    const std::uint32_t input_delay = k * (request.ranks - 1 - rank);
    for (std::uint32_t step = 0; step < m + weight_delay; ++step) {
      if (step < m) list.forward(rank);
      if (step >= input_delay && step - input_delay < m) list.input_grad(rank);
      if (step >= weight_delay) list.weight_grad();
    }
    plan.schedule.actions[rank] = list.take();
  }
  return plan;
}

}  // namespace

Result<PlannedSchedule> make_zb_h1(const ScheduleRequest& request) {
  return handcrafted(request, 1);
}

Result<PlannedSchedule> make_zb_h2(const ScheduleRequest& request) {
  return handcrafted(request, 2);
}

}  // namespace bubblesim::pipeline
