// Schedules whose micro-batches all enter at the first stage and wait for whole backwards.
#include <algorithm>
#include <numeric>
#include <string>

#include "sim/pipeline/generators/generators.hpp"

namespace bubblesim::pipeline {
namespace {

/// A chain of a stage a rank; `write(list, rank)` writes a rank's list.
template <class Write>
PlannedSchedule chain_plan(const ScheduleRequest& request, Write write) {
  PlannedSchedule plan =
      one_stage_a_rank(request, chain_graph(request.ranks, request.micro_batches));
  for (std::uint32_t rank = 0; rank < request.ranks; ++rank) {
    RankList list(plan.graph);
    write(list, rank);
    plan.schedule.actions[rank] = list.take();
  }
  return plan;
}

}  // namespace

// Naive model parallel: a micro-batch goes through all stages and back before the next starts.

Result<PlannedSchedule> make_sequential(const ScheduleRequest& request) {
  return chain_plan(request, [](RankList& list, std::uint32_t rank) {
    while (list.has_forward(rank)) {
      list.forward(rank);
      list.backward(rank);
    }
  });
}

// GPipe (arXiv 1811.06965): all forwards, then all backwards, in the same order as PyTorch's
// ScheduleGPipe; the paper draws backwards in reverse, which changes no time and no peak.

Result<PlannedSchedule> make_gpipe(const ScheduleRequest& request) {
  return chain_plan(request, [](RankList& list, std::uint32_t rank) {
    while (list.has_forward(rank)) list.forward(rank);
    while (list.has_backward(rank)) list.backward(rank);
  });
}

// 1F1B, or PipeDream-flush (arXiv 2006.09503; 2104.04473, section 2.2): rank r of p runs
// min(p-1-r, m) forwards, then one forward and one backward in turn, then the backwards left.

Result<PlannedSchedule> make_1f1b(const ScheduleRequest& request) {
  return chain_plan(request, [&](RankList& list, std::uint32_t rank) {
    const std::uint32_t warm_up = std::min(request.ranks - 1 - rank, request.micro_batches);
    for (std::uint32_t i = 0; i < warm_up; ++i) list.forward(rank);
    while (list.has_backward(rank)) {
      if (list.has_forward(rank)) list.forward(rank);
      list.backward(rank);
    }
  });
}

namespace {

// Interleaved 1F1B (arXiv 2104.04473, section 2.2): rank r of p holds the chunks r, p+r, 2p+r...
// Micro-batches go in groups; a rank runs a group through its first chunk, then through its
// second, and so on. Warm-up: 2(p-1-r) + (v-1)*group chunk forwards. Order and warm-up as in
// Megatron-LM, core/pipeline_parallel/schedules.py, get_pp_rank_microbatches and
// get_schedule_table; a group of more than p micro-batches is its relaxed rule, in Llama 3
// (arXiv 2407.21783, section 3.3.2) "N contiguous micro-batches".

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

namespace {

// 1F1B on a graph of stages (GraphPipe, arXiv 2406.17145, section 6). Backwards from the sinks,
// each stage learns how many samples it may have in flight: those of its hungriest consumer, and
// one step of its own; a step is its micro-batch, or a consumer's if that is larger. It runs so
// many forwards before its first backward, then k forwards and k backwards in turn (kFkB), k
// being its micro-batches in a step. On a chain with equal sizes this is 1F1B: stage i of S
// (from 1) runs S+1-i forwards before its first backward.

struct Pace {
  std::uint64_t step = 1;       // samples
  std::uint64_t in_flight = 1;  // samples, at most, before a backward
};

std::vector<Pace> paces_of(const StageGraph& graph) {
  std::vector<Pace> paces(graph.size());
  std::vector<std::uint32_t> order = topological_order(graph);
  std::reverse(order.begin(), order.end());
  for (const std::uint32_t stage : order) {
    const StageNode& node = graph.stages[stage];
    std::uint64_t step = node.micro_batch_size;
    std::uint64_t ahead = 0;
    for (const std::uint32_t consumer : node.consumers) {
      step = std::lcm(step, paces[consumer].step);
      ahead = std::max(ahead, paces[consumer].in_flight);
    }
    // Whole steps, so that a consumer's last sample is never half of a producer's micro-batch.
    paces[stage] = {step, (ahead + step - 1) / step * step + step};
  }
  return paces;
}

std::vector<Action> actions_of(const StageGraph& graph, std::uint32_t stage, const Pace& pace) {
  const std::uint32_t size = graph.stages[stage].micro_batch_size;
  const std::uint64_t k = pace.step / size;
  RankList list(graph);
  for (std::uint64_t i = k; i < pace.in_flight / size && list.has_forward(stage); ++i) {
    list.forward(stage);
  }
  while (list.has_backward(stage)) {
    for (std::uint64_t i = 0; i < k && list.has_forward(stage); ++i) list.forward(stage);
    for (std::uint64_t i = 0; i < k && list.has_backward(stage); ++i) list.backward(stage);
  }
  return list.take();
}

}  // namespace

Result<PlannedSchedule> make_graph(const ScheduleRequest& request) {
  StageGraph graph = request.graph ? *request.graph
                                   : chain_graph(request.ranks, request.micro_batches);
  if (graph.size() != request.ranks) {
    return fail("graph: found " + std::to_string(graph.size()) + " stages on " +
                std::to_string(request.ranks) + " ranks; expected one stage a rank; nearest: " +
                std::to_string(graph.size()) + " ranks");
  }
  if (topological_order(graph).size() != graph.size()) {
    return fail("graph: found a cycle of stages; expected none");
  }
  PlannedSchedule plan = one_stage_a_rank(request, std::move(graph));
  const std::vector<Pace> paces = paces_of(plan.graph);
  for (std::uint32_t rank = 0; rank < request.ranks; ++rank) {
    plan.schedule.actions[rank] = actions_of(plan.graph, rank, paces[rank]);
  }
  return plan;
}

namespace {

// Schedules that cut backwards in two and fill bubbles with weight gradients.

// ZB-H1 and ZB-H2 (arXiv 2401.10241, section 2). With k = 1 or 2, rank r of p issues, at its
// step x, F of micro-batch x, I of x - k(p-1-r) and W of x - k(p-1), each where there is one: k
// sets how many forwards a rank may be ahead of its input gradients, and W fills what is left.

PlannedSchedule handcrafted(const ScheduleRequest& request, std::uint32_t k) {
  const std::uint32_t m = request.micro_batches;
  const std::uint32_t weight_delay = k * (request.ranks - 1);
  return chain_plan(request, [&](RankList& list, std::uint32_t rank) {
    const std::uint32_t input_delay = k * (request.ranks - 1 - rank);
    for (std::uint32_t step = 0; step < m + weight_delay; ++step) {
      if (step < m) list.forward(rank);
      if (step >= input_delay && step - input_delay < m) list.input_grad(rank);
      if (step >= weight_delay) list.weight_grad();
    }
  });
}

}  // namespace

Result<PlannedSchedule> make_zb_h1(const ScheduleRequest& request) {
  return handcrafted(request, 1);
}

Result<PlannedSchedule> make_zb_h2(const ScheduleRequest& request) {
  return handcrafted(request, 2);
}

namespace {

// ZB-V (arXiv 2405.15362): rank r of p holds stage a = r and stage b = 2p-1-r. Steps as in
// PyTorch's ScheduleZBVZeroBubble, schedules.py: 2(p-r)-1 Fa; r times Fb Fa; p-r times Fb Ib Wb;
// then Fa Ia Wa Fb Ib Wb until all forwards are done; r times Ia Ib; p-r times Ia Wa; the W left,
// b's first. The rule is made for at least 2p-1 micro-batches; with fewer, those that are not
// there are left out.

class VList {
 public:
  VList(const StageGraph& graph, std::uint32_t ranks, std::uint32_t rank)
      : list_(graph), p_(ranks), r_(rank), a_(rank), b_(2 * ranks - 1 - rank) {}

  std::vector<Action> make() {
    for (std::uint32_t i = 0; i < 2 * (p_ - r_) - 1; ++i) list_.forward(a_);
    for (std::uint32_t i = 0; i < r_; ++i) {
      list_.forward(b_);
      list_.forward(a_);
    }
    for (std::uint32_t i = 0; i < p_ - r_; ++i) round_b();
    while (list_.has_forward(b_)) {
      if (list_.has_forward(a_)) list_.forward(a_);
      gradients(a_);
      round_b();
    }
    for (std::uint32_t i = 0; i < r_; ++i) {
      list_.input_grad(a_);
      list_.input_grad(b_);
    }
    for (std::uint32_t i = 0; i < p_ - r_; ++i) gradients(a_);
    for (std::uint32_t i = 0; i < r_; ++i) list_.weight_grad_of(b_);
    for (std::uint32_t i = 0; i < r_; ++i) list_.weight_grad_of(a_);
    return list_.take();
  }

 private:
  void gradients(std::uint32_t stage) {
    list_.input_grad(stage);
    list_.weight_grad_of(stage);
  }

  void round_b() {
    list_.forward(b_);
    gradients(b_);
  }

  RankList list_;
  std::uint32_t p_, r_, a_, b_;
};

}  // namespace

Result<PlannedSchedule> make_zb_v(const ScheduleRequest& request) {
  const std::uint32_t made_for = std::max(request.micro_batches, 2 * request.ranks - 1);
  const StageGraph full = chain_graph(2 * request.ranks, made_for);
  PlannedSchedule plan =
      two_stages_a_rank(request, chain_graph(2 * request.ranks, request.micro_batches));
  for (std::uint32_t rank = 0; rank < request.ranks; ++rank) {
    std::vector<Action> actions = VList(full, request.ranks, rank).make();
    std::erase_if(actions, [&](const Action& action) {
      return action.micro_batch >= request.micro_batches;
    });
    plan.schedule.actions[rank] = std::move(actions);
  }
  return plan;
}

}  // namespace bubblesim::pipeline
