#include "sim/pipeline/walk.hpp"

#include <array>
#include <deque>

namespace bubblesim::pipeline {
namespace {

class Walker {
 public:
  Walker(const Schedule& schedule, const StageGraph& graph)
      : schedule_(schedule),
        graph_(graph),
        cells_(graph),
        done_{std::vector<bool>(cells_.size()), std::vector<bool>(cells_.size())},
        next_(schedule.actions.size()),
        queued_(schedule.actions.size()) {}

  Walk run() {
    result_.order.reserve(schedule_.action_count());
    for (std::uint32_t rank = 0; rank < next_.size(); ++rank) wake(rank);
    while (!queue_.empty()) {
      const std::uint32_t rank = queue_.front();
      queue_.pop_front();
      queued_[rank] = false;
      advance(rank);
    }
    for (std::uint32_t rank = 0; rank < next_.size(); ++rank) {
      if (next_[rank] == schedule_.actions[rank].size()) continue;
      result_.stuck.push_back({{rank, next_[rank]}, *first_missing(head(rank))});
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] const Action& head(std::uint32_t rank) const {
    return schedule_.actions[rank][next_[rank]];
  }

  [[nodiscard]] bool is_done(const ProductRef& ref) const {
    return done_[static_cast<std::size_t>(ref.product)][cells_.index(ref.stage, ref.micro_batch)];
  }

  [[nodiscard]] std::optional<ProductRef> first_missing(const Action& action) const {
    std::optional<ProductRef> missing;
    for_each_input(action, graph_, [&](const ProductRef& ref) {
      if (!missing && !is_done(ref)) missing = ref;
    });
    return missing;
  }

  void wake(std::uint32_t rank) {
    if (queued_[rank]) return;
    queued_[rank] = true;
    queue_.push_back(rank);
  }

  void advance(std::uint32_t rank) {
    while (next_[rank] < schedule_.actions[rank].size() && !first_missing(head(rank))) {
      finish(head(rank));
      result_.order.push_back({rank, next_[rank]++});
    }
  }

  void finish(const Action& action) {
    if (action.has_forward()) {
      done_[0][cells_.index(action.stage, action.micro_batch)] = true;
      wake_ranks_of(graph_.stages[action.stage].consumers);
    }
    if (action.has_input_grad()) {
      done_[1][cells_.index(action.backward_stage(), action.backward_micro_batch())] = true;
      wake_ranks_of(graph_.stages[action.backward_stage()].producers);
    }
  }

  void wake_ranks_of(const std::vector<std::uint32_t>& stages) {
    for (const std::uint32_t stage : stages) wake(schedule_.rank_of_stage[stage]);
  }

  const Schedule& schedule_;
  const StageGraph& graph_;
  CellIndex cells_;
  std::array<std::vector<bool>, 2> done_;  // by product, then cell
  std::vector<std::uint32_t> next_;
  std::vector<bool> queued_;
  std::deque<std::uint32_t> queue_;
  Walk result_;
};

}  // namespace

CellIndex::CellIndex(const StageGraph& graph) : graph_(&graph) {
  begin_.reserve(graph.stages.size() + 1);
  begin_.push_back(0);
  for (const StageNode& node : graph.stages) {
    begin_.push_back(begin_.back() + node.micro_batches);
  }
}

bool CellIndex::holds(std::uint32_t stage, std::uint32_t micro_batch) const {
  if (stage >= graph_->stages.size()) return false;
  const StageNode& node = graph_->stages[stage];
  return micro_batch >= node.first_micro_batch &&
         micro_batch - node.first_micro_batch < node.micro_batches;
}

Walk walk(const Schedule& schedule, const StageGraph& graph) {
  return Walker(schedule, graph).run();
}

}  // namespace bubblesim::pipeline
