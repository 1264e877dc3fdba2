#include "sim/pipeline/schedule.hpp"

#include <algorithm>
#include <numeric>

namespace bubblesim::pipeline {
namespace {

std::string part(std::uint32_t stage, char kind, std::uint32_t micro_batch) {
  return std::to_string(stage) + kind + std::to_string(micro_batch);
}

}  // namespace

char letter(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward: return 'F';
    case ActionKind::kInputGrad: return 'I';
    case ActionKind::kWeightGrad: return 'W';
    case ActionKind::kBackward: return 'B';
    case ActionKind::kOverlapped: return 'O';
  }
  return '?';
}

std::string action_text(const Action& action) {
  if (action.kind != ActionKind::kOverlapped) {
    return part(action.stage, letter(action.kind), action.micro_batch);
  }
  return "(" + part(action.stage, 'F', action.micro_batch) + ";" +
         part(action.other_stage, 'B', action.other_micro_batch) + ")OVERLAP_F_B";
}

namespace {

void link(StageGraph& graph, std::uint32_t producer, std::uint32_t consumer) {
  graph.stages[producer].consumers.push_back(consumer);
  graph.stages[consumer].producers.push_back(producer);
}

Result<void> check_sizes(std::uint32_t stages, const std::vector<std::uint32_t>& sizes,
                         std::uint32_t samples) {
  if (sizes.empty()) return {};
  if (sizes.size() != stages) {
    return fail("found " + std::to_string(sizes.size()) + " micro-batch sizes for " +
                std::to_string(stages) + " stages; expected one a stage");
  }
  std::uint64_t common = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0 || sizes[i] > samples) {
      return fail("stage " + std::to_string(i) + ": found micro-batch size " +
                  std::to_string(sizes[i]) + "; expected 1 to the batch, " +
                  std::to_string(samples));
    }
    common = std::lcm(common, static_cast<std::uint64_t>(sizes[i]));
    if (common > UINT32_MAX) {
      return fail("stage " + std::to_string(i) + ": found micro-batch size " +
                  std::to_string(sizes[i]) + "; no batch is a multiple of all sizes");
    }
  }
  if (samples % common == 0) return {};
  const std::uint64_t below = samples / common * common;
  return fail("found a batch of " + std::to_string(samples) +
              "; expected a multiple of all micro-batch sizes, " + std::to_string(common) +
              "; nearest: " +
              (below == 0 ? "" : std::to_string(below) + " or ") +
              std::to_string(below + common));
}

Result<void> add_edges(StageGraph& graph, const std::vector<StageEdge>& edges) {
  for (const auto& [producer, consumer] : edges) {
    const std::string text = std::to_string(producer) + "-" + std::to_string(consumer);
    if (producer >= graph.size() || consumer >= graph.size()) {
      return fail("edge " + text + " names a stage that is not there; stages are 0 to " +
                  std::to_string(graph.size() - 1));
    }
    if (producer == consumer) return fail("edge " + text + " makes a stage wait for itself");
    link(graph, producer, consumer);
  }
  for (std::uint32_t stage = 0; stage < graph.size(); ++stage) {
    StageNode& node = graph.stages[stage];
    std::sort(node.producers.begin(), node.producers.end());
    std::sort(node.consumers.begin(), node.consumers.end());
    const auto twice = std::adjacent_find(node.consumers.begin(), node.consumers.end());
    if (twice != node.consumers.end()) {
      return fail("edge " + std::to_string(stage) + "-" + std::to_string(*twice) +
                  " is given twice");
    }
  }
  return {};
}

}  // namespace

StageGraph chain_graph(std::uint32_t stages, std::uint32_t micro_batches) {
  StageGraph graph;
  graph.stages.resize(stages);
  for (StageNode& node : graph.stages) node.micro_batches = micro_batches;
  for (std::uint32_t stage = 1; stage < stages; ++stage) link(graph, stage - 1, stage);
  return graph;
}

StageGraph two_way_graph(std::uint32_t depth, std::uint32_t micro_batches) {
  StageGraph graph;
  graph.stages.resize(2 * depth);
  const std::uint32_t half = micro_batches / 2;
  for (std::uint32_t stage = 0; stage < 2 * depth; ++stage) {
    graph.stages[stage].micro_batches = half;
    graph.stages[stage].first_micro_batch = stage < depth ? 0 : half;
    if (stage % depth != 0) link(graph, stage - 1, stage);
  }
  return graph;
}

Result<StageGraph> make_stage_graph(std::uint32_t stages, const std::vector<StageEdge>& edges,
                                    const std::vector<std::uint32_t>& sizes,
                                    std::uint32_t samples) {
  if (stages == 0) return fail("found a graph of 0 stages; expected at least 1");
  BUBBLESIM_RETURN_IF_ERROR(check_sizes(stages, sizes, samples));
  StageGraph graph;
  graph.stages.resize(stages);
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    const std::uint32_t size = sizes.empty() ? 1 : sizes[stage];
    graph.stages[stage].micro_batch_size = size;
    graph.stages[stage].micro_batches = samples / size;
  }
  BUBBLESIM_RETURN_IF_ERROR(add_edges(graph, edges));
  if (topological_order(graph).size() != stages) {
    return fail("found edges that form a cycle; expected a graph in which no stage waits for "
                "itself");
  }
  return graph;
}

std::pair<std::uint32_t, std::uint32_t> overlapping(const StageNode& from,
                                                    std::uint32_t micro_batch,
                                                    const StageNode& to) {
  const std::uint64_t index = micro_batch - from.first_micro_batch;
  const std::uint64_t begin = index * from.micro_batch_size;
  const std::uint64_t end = begin + from.micro_batch_size;
  const std::uint64_t count = to.micro_batches;
  const std::uint64_t first = std::min(begin / to.micro_batch_size, count);
  const std::uint64_t last =
      std::min((end + to.micro_batch_size - 1) / to.micro_batch_size, count);
  return {static_cast<std::uint32_t>(first) + to.first_micro_batch,
          static_cast<std::uint32_t>(last) + to.first_micro_batch};
}

std::vector<std::uint32_t> topological_order(const StageGraph& graph) {
  std::vector<std::size_t> waits(graph.size());
  std::vector<std::uint32_t> order;
  for (std::uint32_t stage = 0; stage < graph.size(); ++stage) {
    waits[stage] = graph.stages[stage].producers.size();
    if (waits[stage] == 0) order.push_back(stage);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const std::uint32_t consumer : graph.stages[order[i]].consumers) {
      if (--waits[consumer] == 0) order.push_back(consumer);
    }
  }
  return order;
}

std::uint32_t depth(const StageGraph& graph) {
  std::vector<std::uint32_t> longest(graph.size(), 1);
  std::uint32_t most = 0;
  for (const std::uint32_t stage : topological_order(graph)) {
    for (const std::uint32_t producer : graph.stages[stage].producers) {
      longest[stage] = std::max(longest[stage], longest[producer] + 1);
    }
    most = std::max(most, longest[stage]);
  }
  return most;
}

}  // namespace bubblesim::pipeline
