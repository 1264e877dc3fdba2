// Generators of schedules, for registry.hpp, and helpers that write their lists. The registry has
// checked that all numbers are at least 1 and that tables stay small.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "sim/pipeline/registry.hpp"

namespace bubblesim::pipeline {

[[nodiscard]] Result<PlannedSchedule> make_sequential(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_gpipe(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_1f1b(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_interleaved(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_zb_h1(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_zb_h2(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_zb_v(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_dualpipe(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_dualpipev(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_chimera(const ScheduleRequest& request);
[[nodiscard]] Result<PlannedSchedule> make_graph(const ScheduleRequest& request);

class RankList {
 public:
  explicit RankList(const StageGraph& graph);

  [[nodiscard]] bool has_forward(std::uint32_t stage) const;
  [[nodiscard]] bool has_backward(std::uint32_t stage) const;

  void forward(std::uint32_t stage);
  void backward(std::uint32_t stage);
  void input_grad(std::uint32_t stage);     ///< and queues the weight gradient W that belongs to it
  void weight_grad();                       ///< the first W of the queue
  void weight_grad_of(std::uint32_t stage); ///< the stage's first W of the queue
  void overlapped(std::uint32_t forward_stage, std::uint32_t backward_stage);

  [[nodiscard]] std::vector<Action> take() { return std::move(actions_); }

 private:
  std::uint32_t next_forward(std::uint32_t stage);
  std::uint32_t next_backward(std::uint32_t stage);

  const StageGraph* graph_;
  std::vector<std::uint32_t> forwards_;   // number of forwards so far, by stage
  std::vector<std::uint32_t> backwards_;
  std::deque<Action> weights_;
  std::vector<Action> actions_;
};

/// A plan with one stage for each rank, and empty lists.
[[nodiscard]] PlannedSchedule one_stage_a_rank(const ScheduleRequest& request, StageGraph graph);

/// A plan with two stages for each rank, r and 2p-1-r, and empty lists.
[[nodiscard]] PlannedSchedule two_stages_a_rank(const ScheduleRequest& request, StageGraph graph);

}  // namespace bubblesim::pipeline
