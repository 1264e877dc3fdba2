// Interleaved 1F1B (arXiv 2104.04473, section 2.2): rank r of p holds the chunks r, p+r, 2p+r...
// Micro-batches go in groups; a rank runs a group through its first chunk, then through its
// second, and so on. Warm-up: 2(p-1-r) + (v-1)*group chunk forwards. Order and warm-up as in
// Megatron-LM, core/pipeline_parallel/schedules.py, get_pp_rank_microbatches and
// get_schedule_table; a group of more than p micro-batches is its relaxed rule, in Llama 3
// (arXiv 2407.21783, section 3.3.2) "N contiguous micro-batches".
#include <algorithm>
#include <string>

#include "sim/pipeline/generators/generators.hpp"
#include "sim/pipeline/generators/rank_list.hpp"

namespace bubblesim::pipeline {
namespace {

struct Slot {
  std::uint32_t chunk;
  std::uint32_t micro_batch;
};

// Groups of `group` micro-batches, each through all chunks; the last group may be smaller.
std::vector<Slot> slots_of(std::uint32_t micro_batches, std::uint32_t chunks,
                           std::uint32_t group) {
  std::vector<Slot> slots;
  slots.reserve(static_cast<std::size_t>(micro_batches) * chunks);
  for (std::uint32_t first = 0; first < micro_batches; first += group) {
    const std::uint32_t end = std::min(micro_batches, first + group);
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      for (std::uint32_t k = first; k < end; ++k) slots.push_back({chunk, k});
    }
  }
  return slots;
}

std::string nearest_multiples(std::uint32_t found, std::uint32_t factor) {
  const std::uint32_t below = found / factor * factor;
  if (below == 0) return std::to_string(factor);
  return std::to_string(below) + " or " + std::to_string(below + factor);
}

// The smallest group into which `micro_batches` >= `ranks` go so that the last one has at least
// `ranks` too.
std::uint32_t nearest_group(std::uint32_t micro_batches, std::uint32_t ranks) {
  std::uint32_t group = ranks;
  while (micro_batches % group != 0 && micro_batches % group < ranks) ++group;
  return group;
}

Result<void> check_groups(const ScheduleRequest& request, std::uint32_t group) {
  const std::uint32_t m = request.micro_batches;
  const std::uint32_t p = request.ranks;
  if (group < p) {
    return fail("interleaved: found groups of " + std::to_string(group) + " micro-batches on " +
                std::to_string(p) + " ranks; expected at least one a rank; nearest: " +
                std::to_string(p));
  }
  const std::uint32_t last = m % group;
  if (last == 0 || (request.group != 0 && last >= p)) return {};
  const std::string alternative =
      m > p && request.group == 0
          ? ", or the same in groups of " + std::to_string(nearest_group(m, p))
          : "";
  return fail("interleaved: found " + std::to_string(m) + " micro-batches on " +
              std::to_string(p) + " ranks; expected a multiple of " + std::to_string(group) +
              "; nearest: " + nearest_multiples(m, group) + " micro-batches" + alternative);
}

std::vector<Action> actions_of(const ScheduleRequest& request, std::uint32_t rank,
                               std::uint32_t chunks, std::uint32_t group,
                               const std::vector<Slot>& slots) {
  const std::size_t warm_up = std::min<std::size_t>(
      2 * std::size_t{request.ranks - 1 - rank} + std::size_t{chunks - 1} * group, slots.size());
  std::vector<Action> actions;
  actions.reserve(2 * slots.size());
  const auto ahead = [&](std::size_t i) {
    actions.push_back(
        forward(slots[i].chunk * request.ranks + rank, slots[i].micro_batch));
  };
  for (std::size_t i = 0; i < warm_up; ++i) ahead(i);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (warm_up + i < slots.size()) ahead(warm_up + i);
    const std::uint32_t chunk = chunks - 1 - slots[i].chunk;
    actions.push_back(backward(chunk * request.ranks + rank, slots[i].micro_batch));
  }
  return actions;
}

}  // namespace

Result<PlannedSchedule> make_interleaved(const ScheduleRequest& request) {
  const std::uint32_t chunks = request.chunks == 0 ? 2 : request.chunks;
  if (chunks == 1) return make_1f1b(request);
  const std::uint32_t group = request.group == 0 ? request.ranks : request.group;
  BUBBLESIM_RETURN_IF_ERROR(check_groups(request, group));
  PlannedSchedule plan = one_stage_a_rank(
      request, chain_graph(request.ranks * chunks, request.micro_batches));
  for (std::uint32_t stage = 0; stage < plan.schedule.stages; ++stage) {
    plan.schedule.rank_of_stage[stage] = stage % request.ranks;
  }
  const std::vector<Slot> slots = slots_of(request.micro_batches, chunks, group);
  for (std::uint32_t rank = 0; rank < request.ranks; ++rank) {
    plan.schedule.actions[rank] = actions_of(request, rank, chunks, group, slots);
  }
  return plan;
}

}  // namespace bubblesim::pipeline
