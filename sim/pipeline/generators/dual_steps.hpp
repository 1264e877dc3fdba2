// The eight steps that DualPipe and DualPipeV share (github.com/deepseek-ai/DualPipe, dualpipe.py
// and dualpipev.py): a rank has a near end `a` (its stage 0 side) and a far end `b`.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/pipeline/schedule.hpp"
#include "sim/pipeline/stage_graph.hpp"

namespace bubblesim::pipeline {

struct DualRank {
  std::uint32_t ranks;          ///< R: from the end where micro-batches enter to the turn
  std::uint32_t rank;           ///< r: distance from that end; R-1 is at the turn
  std::uint32_t near_stage;     ///< a: the stage on the way to the turn
  std::uint32_t far_stage;      ///< b: the stage on the way back, or the other direction's
  std::uint32_t micro_batches;  ///< M of each of the two stages; at least 2R
};

/// 1: 2(R-r-1) Fa. 2: (r+1) times Fa Fb. 3: (R-r-1) times Ib W Fb. 4: (M-2R+r+1) times Fa&Bb,
/// Fb&Ba; at the turn the first pair runs apart. 5: (R-r-1) times Bb, Fb&Ba. 6: (r+1) times Bb
/// Ba, the second half of these with I for B. 7: (R-r-1) times W Ia. 8: (r+1) W.
[[nodiscard]] std::vector<Action> dual_actions(const StageGraph& graph, const DualRank& rank);

}  // namespace bubblesim::pipeline
