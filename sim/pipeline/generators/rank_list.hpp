// What one rank does, written down as "next forward of stage s": the list keeps count of the
// micro-batches. Weight gradients wait in one queue a rank, first in, first out.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "sim/pipeline/registry.hpp"

namespace bubblesim::pipeline {

class RankList {
 public:
  explicit RankList(const StageGraph& graph);

  [[nodiscard]] bool has_forward(std::uint32_t stage) const;
  [[nodiscard]] bool has_backward(std::uint32_t stage) const;

  void forward(std::uint32_t stage);
  void backward(std::uint32_t stage);
  void input_grad(std::uint32_t stage);     ///< its W goes to the end of the queue
  void weight_grad();                       ///< the queue's first
  void weight_grad_of(std::uint32_t stage); ///< the queue's first of this stage
  void overlapped(std::uint32_t forward_stage, std::uint32_t backward_stage);

  [[nodiscard]] std::vector<Action> take() { return std::move(actions_); }

 private:
  std::uint32_t next_forward(std::uint32_t stage);
  std::uint32_t next_backward(std::uint32_t stage);

  const StageGraph* graph_;
  std::vector<std::uint32_t> forwards_;   // by stage, how many there are already
  std::vector<std::uint32_t> backwards_;
  std::deque<Action> weights_;
  std::vector<Action> actions_;
};

/// A plan with one stage a rank and empty lists.
[[nodiscard]] PlannedSchedule one_stage_a_rank(const ScheduleRequest& request, StageGraph graph);

/// A plan with two stages a rank, r and 2p-1-r, and empty lists.
[[nodiscard]] PlannedSchedule two_stages_a_rank(const ScheduleRequest& request, StageGraph graph);

}  // namespace bubblesim::pipeline
