// 1F1B on a graph of stages (GraphPipe, arXiv 2406.17145, section 6). Backwards from the sinks,
// each stage learns how many samples it may have in flight: those of its hungriest consumer, and
// one step of its own; a step is its micro-batch, or a consumer's if that is larger. It runs so
// many forwards before its first backward, then k forwards and k backwards in turn (kFkB), k
// being its micro-batches in a step. On a chain with equal sizes this is 1F1B: stage i of S
// (from 1) runs S+1-i forwards before its first backward.
#include <algorithm>
#include <numeric>
#include <string>

#include "sim/pipeline/generators/generators.hpp"
#include "sim/pipeline/generators/rank_list.hpp"

namespace bubblesim::pipeline {
namespace {

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

}  // namespace bubblesim::pipeline
