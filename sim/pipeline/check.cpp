#include "sim/pipeline/check.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <string>

namespace bubblesim::pipeline {
namespace {

std::string place_of(std::uint32_t rank, std::size_t position) {
  return "rank " + std::to_string(rank) + ", action " + std::to_string(position);
}

std::string name_of(const ProductRef& ref, const char* gradient) {
  return std::to_string(ref.stage) + (ref.product == Product::kForward ? "F" : gradient) +
         std::to_string(ref.micro_batch);
}

class Checker {
 public:
  Checker(const Schedule& schedule, const StageGraph& graph)
      : schedule_(schedule), graph_(graph), cells_(graph) {}

  Errors run() {
    check_shape();
    if (!faults_.empty()) return std::move(faults_);
    for (std::uint32_t rank = 0; rank < schedule_.ranks; ++rank) check_rank(rank);
    if (!faults_.empty()) return finish();
    counts_.resize(cells_.size());
    for (std::uint32_t rank = 0; rank < schedule_.ranks; ++rank) count_rank(rank);
    for (std::uint32_t stage = 0; stage < graph_.size(); ++stage) check_missing(stage);
    if (faults_.empty()) check_runs();
    return finish();
  }

 private:
  // How often a micro-batch was seen on a stage: F, I, W, B.
  using Counts = std::array<std::uint8_t, 4>;

  void add(std::string place, std::string message) {
    if (faults_.size() < kMaxFaults) {
      faults_.push_back({schedule_.name, std::move(place), std::move(message)});
    } else {
      ++left_out_;
    }
  }

  Errors finish() {
    if (left_out_ > 0) {
      faults_.push_back({schedule_.name, {}, "and " + std::to_string(left_out_) + " faults more"});
    }
    return std::move(faults_);
  }

  void check_shape() {
    if (schedule_.ranks == 0 || schedule_.actions.size() != schedule_.ranks) {
      return add({}, "found lists for " + std::to_string(schedule_.actions.size()) +
                         " ranks; expected " + std::to_string(schedule_.ranks) +
                         ", and at least 1");
    }
    if (schedule_.rank_of_stage.size() != schedule_.stages ||
        graph_.size() != schedule_.stages) {
      return add({}, "found " + std::to_string(schedule_.rank_of_stage.size()) +
                         " placed stages and a graph of " + std::to_string(graph_.size()) +
                         "; expected " + std::to_string(schedule_.stages) + " of both");
    }
    for (std::uint32_t stage = 0; stage < schedule_.stages; ++stage) {
      if (schedule_.rank_of_stage[stage] < schedule_.ranks) continue;
      add({}, "stage " + std::to_string(stage) + " is on rank " +
                  std::to_string(schedule_.rank_of_stage[stage]) + "; ranks are 0 to " +
                  std::to_string(schedule_.ranks - 1));
    }
    // Before tables of that size are made: each pair takes an action at least.
    if (cells_.size() > 2 * schedule_.action_count()) {
      add({}, "found " + std::to_string(schedule_.action_count()) + " actions; expected " +
                  std::to_string(cells_.size()) +
                  " micro-batches on stages, each forward and backward");
    }
  }

  void check_rank(std::uint32_t rank) {
    for (std::size_t i = 0; i < schedule_.actions[rank].size(); ++i) {
      const Action& action = schedule_.actions[rank][i];
      check_part(rank, i, action.stage, action.micro_batch);
      if (action.kind == ActionKind::kOverlapped) {
        check_part(rank, i, action.other_stage, action.other_micro_batch);
      }
    }
  }

  void check_part(std::uint32_t rank, std::size_t position, std::uint32_t stage,
                  std::uint32_t micro_batch) {
    const std::string found =
        "found " + action_text(schedule_.actions[rank][position]) + "; ";
    if (stage >= graph_.size()) {
      return add(place_of(rank, position),
                 found + "stages are 0 to " + std::to_string(graph_.size() - 1));
    }
    if (!cells_.holds(stage, micro_batch)) {
      const StageNode& node = graph_.stages[stage];
      return add(place_of(rank, position),
                 found + "micro-batches of stage " + std::to_string(stage) + " are " +
                     std::to_string(node.first_micro_batch) + " to " +
                     std::to_string(node.first_micro_batch + node.micro_batches - 1));
    }
    if (schedule_.rank_of_stage[stage] != rank) {
      add(place_of(rank, position), found + "stage " + std::to_string(stage) + " is on rank " +
                                        std::to_string(schedule_.rank_of_stage[stage]));
    }
  }

  void count_rank(std::uint32_t rank) {
    for (std::size_t i = 0; i < schedule_.actions[rank].size(); ++i) {
      const Action& action = schedule_.actions[rank][i];
      if (action.has_forward()) count(rank, i, 0, action.stage, action.micro_batch);
      if (action.kind == ActionKind::kForward) continue;
      const std::size_t slot = action.kind == ActionKind::kInputGrad    ? 1
                               : action.kind == ActionKind::kWeightGrad ? 2
                                                                        : 3;
      count(rank, i, slot, action.backward_stage(), action.backward_micro_batch());
    }
  }

  void count(std::uint32_t rank, std::size_t position, std::size_t slot, std::uint32_t stage,
             std::uint32_t micro_batch) {
    Counts& seen = counts_[cells_.index(stage, micro_batch)];
    const bool split_and_whole =
        slot == 3 ? seen[1] + seen[2] > 0 : slot != 0 && seen[3] > 0;
    if (seen[slot] > 0 || split_and_whole) {
      add(place_of(rank, position),
          "found " + action_text(schedule_.actions[rank][position]) +
              (split_and_whole ? "; this micro-batch has both B and I or W" : " a second time"));
    }
    seen[slot] = 1;
  }

  void check_missing(std::uint32_t stage) {
    const StageNode& node = graph_.stages[stage];
    for (std::uint32_t k = 0; k < node.micro_batches; ++k) {
      const std::uint32_t micro_batch = node.first_micro_batch + k;
      const Counts& seen = counts_[cells_.index(stage, micro_batch)];
      std::string missing;
      if (seen[0] == 0) missing += action_text(forward(stage, micro_batch));
      const auto also = [&](const std::string& text) {
        missing += (missing.empty() ? "" : ", ") + text;
      };
      if (seen[1] + seen[2] + seen[3] == 0) also(action_text(backward(stage, micro_batch)));
      if (seen[1] + seen[2] == 1) {
        also(action_text(seen[1] == 0 ? input_grad(stage, micro_batch)
                                      : weight_grad(stage, micro_batch)));
      }
      if (!missing.empty()) {
        add("rank " + std::to_string(schedule_.rank_of_stage[stage]), "lacks " + missing);
      }
    }
  }

  void check_runs() {
    const Walk result = walk(schedule_, graph_);
    for (const StuckHead& head : result.stuck) {
      const auto [rank, position] = head.step;
      const std::uint32_t other = schedule_.rank_of_stage[head.missing.stage];
      std::string message = "deadlock: " + action_text(schedule_.actions[rank][position]) +
                            " waits for " + name_of(head.missing, "B/I");
      message += other == rank ? ", which is later in the same list"
                               : " of rank " + std::to_string(other) + ", which waits too";
      add(place_of(rank, position), std::move(message));
    }
  }

  const Schedule& schedule_;
  const StageGraph& graph_;
  CellIndex cells_;
  std::vector<Counts> counts_;
  Errors faults_;
  std::size_t left_out_ = 0;
};

// For each stage the lowest micro-batch and one above the highest that it sees.
std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges(const Schedule& schedule) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> seen(schedule.stages, {UINT32_MAX, 0});
  for (const auto& list : schedule.actions) {
    for (const Action& action : list) {
      if (!action.has_forward() || action.stage >= schedule.stages) continue;
      auto& [low, high] = seen[action.stage];
      low = std::min(low, action.micro_batch);
      high = std::max(high, action.micro_batch + 1);
    }
  }
  return seen;
}

}  // namespace

Errors check(const Schedule& schedule, const StageGraph& graph) {
  return Checker(schedule, graph).run();
}

StageGraph infer_graph(const Schedule& schedule) {
  const std::uint32_t depth = schedule.stages / 2;
  const std::uint32_t half = schedule.micro_batches / 2;
  bool two_way = schedule.ranks == depth && schedule.stages == 2 * depth && depth > 1 &&
                 schedule.micro_batches == 2 * half &&
                 schedule.rank_of_stage.size() == schedule.stages;
  const auto seen = ranges(schedule);
  for (std::uint32_t stage = 0; two_way && stage < schedule.stages; ++stage) {
    const bool second = stage >= depth;
    const std::uint32_t rank = second ? 2 * depth - 1 - stage : stage;
    two_way = schedule.rank_of_stage[stage] == rank &&
              (second ? seen[stage].first >= half : seen[stage].second <= half);
  }
  return two_way ? two_way_graph(depth, schedule.micro_batches)
                 : chain_graph(schedule.stages, schedule.micro_batches);
}

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
