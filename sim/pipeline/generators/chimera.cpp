// Chimera (Li and Hoefler, arXiv 2107.06925, section 3): half of the micro-batches flow down,
// half flow up through a second copy of the model (stage p+i of the table is its stage i, on rank
// p-1-i). In units of p micro-batches with F = B = 1, the k-th of a direction runs stage s forward
// at time s + 2k and backward at 2p-1-s + 2k: the two directions never meet, and units follow one
// another every 2p ("direct concatenation"). Only the order that results is kept.
#include <algorithm>
#include <string>
#include <utility>

#include "sim/pipeline/generators/generators.hpp"
#include "sim/pipeline/generators/rank_list.hpp"

namespace bubblesim::pipeline {
namespace {

using TimedAction = std::pair<std::uint64_t, Action>;

Result<void> check_even(const char* what, std::uint32_t found) {
  if (found % 2 == 0) return {};
  return fail("chimera: found " + std::to_string(found) + " " + what +
              "; expected an even number; nearest: " +
              (found == 1 ? "" : std::to_string(found - 1) + " or ") +
              std::to_string(found + 1));
}

// `local` is the stage within its direction's copy.
void add_stage(const PlannedSchedule& plan, std::uint32_t stage, std::uint32_t local,
               std::vector<TimedAction>& timed) {
  const std::uint64_t p = plan.schedule.ranks;
  const StageNode& node = plan.graph.stages[stage];
  for (std::uint32_t i = 0; i < node.micro_batches; ++i) {
    const std::uint64_t unit = i / (p / 2);
    const std::uint64_t entry = 2 * p * unit + 2 * (i % (p / 2));
    const std::uint32_t micro_batch = node.first_micro_batch + i;
    timed.push_back({entry + local, forward(stage, micro_batch)});
    timed.push_back({entry + 2 * p - 1 - local, backward(stage, micro_batch)});
  }
}

}  // namespace

Result<PlannedSchedule> make_chimera(const ScheduleRequest& request) {
  BUBBLESIM_RETURN_IF_ERROR(check_even("ranks", request.ranks));
  BUBBLESIM_RETURN_IF_ERROR(check_even("micro-batches", request.micro_batches));
  const std::uint32_t p = request.ranks;
  PlannedSchedule plan = two_stages_a_rank(request, two_way_graph(p, request.micro_batches));
  for (std::uint32_t rank = 0; rank < p; ++rank) {
    std::vector<TimedAction> timed;
    add_stage(plan, rank, rank, timed);
    add_stage(plan, 2 * p - 1 - rank, p - 1 - rank, timed);
    std::stable_sort(timed.begin(), timed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const TimedAction& action : timed) plan.schedule.actions[rank].push_back(action.second);
  }
  return plan;
}

}  // namespace bubblesim::pipeline
