#include "sim/base/json.hpp"
#include "sim/pipeline/render.hpp"

namespace bubblesim::pipeline {
namespace {

Json times_json(const UnitTimes& times) {
  Json json = {{"forward", times.every_stage.forward},
               {"input_grad", times.every_stage.input_grad},
               {"weight_grad", times.every_stage.weight_grad},
               {"p2p", times.p2p}};
  if (times.backward) json["backward"] = *times.backward;
  if (times.overlapped) json["overlapped"] = *times.overlapped;
  if (times.by_stage.empty()) return json;
  Json stages = Json::array();
  for (const StageTimes& stage : times.by_stage) {
    stages.push_back({{"forward", stage.forward},
                      {"input_grad", stage.input_grad},
                      {"weight_grad", stage.weight_grad}});
  }
  json["by_stage"] = std::move(stages);
  return json;
}

Json stages_json(const Schedule& schedule, const StageGraph& graph) {
  Json stages = Json::array();
  for (std::uint32_t stage = 0; stage < graph.size(); ++stage) {
    const StageNode& node = graph.stages[stage];
    stages.push_back({{"rank", schedule.rank_of_stage[stage]},
                      {"producers", node.producers},
                      {"first_micro_batch", node.first_micro_batch},
                      {"micro_batches", node.micro_batches},
                      {"micro_batch_size", node.micro_batch_size}});
  }
  return stages;
}

Json rank_json(const Schedule& schedule, const Execution& execution, std::uint32_t rank) {
  Json actions = Json::array();
  for (std::size_t i = 0; i < schedule.actions[rank].size(); ++i) {
    const Span& span = execution.spans[rank][i];
    actions.push_back({{"action", action_text(schedule.actions[rank][i])},
                       {"start", span.start},
                       {"end", span.end}});
  }
  return {{"busy", execution.busy[rank]},
          {"idle", execution.idle[rank]},
          {"peak_activations", execution.peak_activations[rank]},
          {"actions", std::move(actions)}};
}

}  // namespace

std::string render_json(const Schedule& schedule, const StageGraph& graph,
                        const UnitTimes& times, const Execution& execution) {
  Json json = {{"format", "bubblesim.schedule/1"},
               {"name", schedule.name},
               {"ranks", schedule.ranks},
               {"micro_batches", schedule.micro_batches},
               {"times", times_json(times)},
               {"stages", stages_json(schedule, graph)},
               {"makespan", execution.makespan},
               {"longest_span", execution.longest_span},
               {"span_bubble", execution.span_bubble()},
               {"span_bubble_fraction", execution.span_bubble_fraction()},
               {"makespan_bubble_fraction", execution.makespan_bubble_fraction()},
               {"contiguous_fraction", execution.contiguous_fraction()}};
  Json ranks = Json::array();
  for (std::uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    ranks.push_back(rank_json(schedule, execution, rank));
  }
  json["by_rank"] = std::move(ranks);
  Json bubbles = Json::array();
  for (const ScheduleBubble& bubble : execution.bubbles) {
    bubbles.push_back({{"rank", bubble.rank},
                       {"start", bubble.start},
                       {"length", bubble.length},
                       {"kind", bubble_kind_name(bubble.kind)}});
  }
  json["bubbles"] = std::move(bubbles);
  return indented_text(json, 1) + "\n";
}

}  // namespace bubblesim::pipeline
