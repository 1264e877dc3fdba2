#include "sim/pipeline/generators/generators.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace bubblesim::pipeline {

RankList::RankList(const StageGraph& graph)
    : graph_(&graph), forwards_(graph.size()), backwards_(graph.size()) {}

bool RankList::has_forward(std::uint32_t stage) const {
  return forwards_[stage] < graph_->stages[stage].micro_batches;
}

bool RankList::has_backward(std::uint32_t stage) const {
  return backwards_[stage] < graph_->stages[stage].micro_batches;
}

std::uint32_t RankList::next_forward(std::uint32_t stage) {
  return graph_->stages[stage].first_micro_batch + forwards_[stage]++;
}

std::uint32_t RankList::next_backward(std::uint32_t stage) {
  return graph_->stages[stage].first_micro_batch + backwards_[stage]++;
}

void RankList::forward(std::uint32_t stage) {
  actions_.push_back(pipeline::forward(stage, next_forward(stage)));
}

void RankList::backward(std::uint32_t stage) {
  actions_.push_back(pipeline::backward(stage, next_backward(stage)));
}

void RankList::input_grad(std::uint32_t stage) {
  const std::uint32_t micro_batch = next_backward(stage);
  actions_.push_back(pipeline::input_grad(stage, micro_batch));
  weights_.push_back(pipeline::weight_grad(stage, micro_batch));
}

void RankList::weight_grad() {
  BUBBLESIM_CHECK(!weights_.empty(), "a generator asked for a W without an I");
  actions_.push_back(weights_.front());
  weights_.pop_front();
}

void RankList::weight_grad_of(std::uint32_t stage) {
  const auto found = std::find_if(weights_.begin(), weights_.end(),
                                  [&](const Action& action) { return action.stage == stage; });
  BUBBLESIM_CHECK(found != weights_.end(), "a generator asked for a W without an I");
  actions_.push_back(*found);
  weights_.erase(found);
}

void RankList::overlapped(std::uint32_t forward_stage, std::uint32_t backward_stage) {
  const std::uint32_t ahead = next_forward(forward_stage);
  const std::uint32_t back = next_backward(backward_stage);
  actions_.push_back(pipeline::overlapped(forward_stage, ahead, backward_stage, back));
}

PlannedSchedule one_stage_a_rank(const ScheduleRequest& request, StageGraph graph) {
  PlannedSchedule plan;
  plan.schedule.ranks = request.ranks;
  plan.schedule.stages = graph.size();
  plan.schedule.micro_batches = request.micro_batches;
  for (std::uint32_t stage = 0; stage < graph.size(); ++stage) {
    plan.schedule.rank_of_stage.push_back(stage);
  }
  plan.schedule.actions.resize(request.ranks);
  plan.graph = std::move(graph);
  return plan;
}

PlannedSchedule two_stages_a_rank(const ScheduleRequest& request, StageGraph graph) {
  PlannedSchedule plan = one_stage_a_rank(request, std::move(graph));
  for (std::uint32_t rank = 0; rank < request.ranks; ++rank) {
    plan.schedule.rank_of_stage[2 * request.ranks - 1 - rank] = rank;
  }
  return plan;
}

}  // namespace bubblesim::pipeline
