// DualPipe (github.com/deepseek-ai/DualPipe, dualpipe.py): micro-batches enter at both ends, the
// second half of them at rank p-1 into the second copy of the model. Stage p+i of the table is
// the second copy's stage i, on rank p-1-i. Ranks r and p-1-r do the same with roles swapped.
#include <algorithm>
#include <string>

#include "sim/pipeline/generators/dual_steps.hpp"
#include "sim/pipeline/generators/generators.hpp"
#include "sim/pipeline/generators/rank_list.hpp"

namespace bubblesim::pipeline {
namespace {

Result<void> check_plan(const ScheduleRequest& request) {
  const std::uint32_t p = request.ranks;
  const std::uint32_t m = request.micro_batches;
  if (p % 2 != 0) {
    return fail("dualpipe: found " + std::to_string(p) +
                " ranks; expected an even number; nearest: " +
                (p == 1 ? "" : std::to_string(p - 1) + " or ") + std::to_string(p + 1));
  }
  if (m % 2 == 0 && m >= 2 * p) return {};
  const std::string nearest =
      m < 2 * p ? std::to_string(2 * p) : std::to_string(m - 1) + " or " + std::to_string(m + 1);
  return fail("dualpipe: found " + std::to_string(m) + " micro-batches on " + std::to_string(p) +
              " ranks; expected an even number of at least " + std::to_string(2 * p) +
              "; nearest: " + nearest);
}

}  // namespace

Result<PlannedSchedule> make_dualpipe(const ScheduleRequest& request) {
  BUBBLESIM_RETURN_IF_ERROR(check_plan(request));
  const std::uint32_t p = request.ranks;
  PlannedSchedule plan = two_stages_a_rank(request, two_way_graph(p, request.micro_batches));
  for (std::uint32_t rank = 0; rank < p; ++rank) {
    const std::uint32_t first = rank;               // stage of the first direction
    const std::uint32_t second = 2 * p - 1 - rank;  // and of the second
    const bool near_first = rank < p / 2;
    plan.schedule.actions[rank] = dual_actions(
        plan.graph, {p / 2, std::min(rank, p - 1 - rank), near_first ? first : second,
                     near_first ? second : first, request.micro_batches / 2});
  }
  return plan;
}

}  // namespace bubblesim::pipeline
