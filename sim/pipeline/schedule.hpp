// A pipeline schedule as a table: the actions of each rank, in order. execute.hpp computes times; a
// StageGraph says which stages wait for which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim::pipeline {

// One step of a pipeline schedule: an action of a rank on a micro-batch of a stage.
//
// A stage is a run of layers. A rank may hold several, also called chunks or virtual stages. Text
// follows the grammar of PyTorch's torch.distributed.pipelining: "2F0" is the forward of
// micro-batch 0 on stage 2; I, W and B are the backward's input-gradient half, its weight-gradient
// half and the whole; "(0F7;7B3)OVERLAP_F_B" is both at once.

enum class ActionKind : std::uint8_t {
  kForward,     ///< F
  kInputGrad,   ///< I: the half of a backward that the predecessor waits for
  kWeightGrad,  ///< W: the other half; no other stage waits for it
  kBackward,    ///< B: I and W as one step
  kOverlapped,  ///< F of one stage and B of another at once (DualPipe)
};

struct Action {
  ActionKind kind = ActionKind::kForward;
  std::uint32_t stage = 0;              ///< kOverlapped: of the forward part
  std::uint32_t micro_batch = 0;        ///< kOverlapped: of the forward part
  std::uint32_t other_stage = 0;        ///< of the backward part; 0 unless kOverlapped
  std::uint32_t other_micro_batch = 0;  ///< of the backward part; 0 unless kOverlapped

  /// Whether the action is a forward or has one as a part.
  [[nodiscard]] constexpr bool has_forward() const {
    return kind == ActionKind::kForward || kind == ActionKind::kOverlapped;
  }
  /// Whether the action yields the gradient that the stage's producers wait for.
  [[nodiscard]] constexpr bool has_input_grad() const {
    return kind == ActionKind::kInputGrad || kind == ActionKind::kBackward ||
           kind == ActionKind::kOverlapped;
  }
  /// Stage and micro-batch of the backward part; of W too.
  [[nodiscard]] constexpr std::uint32_t backward_stage() const {
    return kind == ActionKind::kOverlapped ? other_stage : stage;
  }
  [[nodiscard]] constexpr std::uint32_t backward_micro_batch() const {
    return kind == ActionKind::kOverlapped ? other_micro_batch : micro_batch;
  }
  friend bool operator==(const Action&, const Action&) = default;
};

[[nodiscard]] constexpr Action forward(std::uint32_t stage, std::uint32_t micro_batch) {
  return {ActionKind::kForward, stage, micro_batch, 0, 0};
}
[[nodiscard]] constexpr Action input_grad(std::uint32_t stage, std::uint32_t micro_batch) {
  return {ActionKind::kInputGrad, stage, micro_batch, 0, 0};
}
[[nodiscard]] constexpr Action weight_grad(std::uint32_t stage, std::uint32_t micro_batch) {
  return {ActionKind::kWeightGrad, stage, micro_batch, 0, 0};
}
[[nodiscard]] constexpr Action backward(std::uint32_t stage, std::uint32_t micro_batch) {
  return {ActionKind::kBackward, stage, micro_batch, 0, 0};
}
[[nodiscard]] constexpr Action overlapped(std::uint32_t forward_stage,
                                          std::uint32_t forward_micro_batch,
                                          std::uint32_t backward_stage,
                                          std::uint32_t backward_micro_batch) {
  return {ActionKind::kOverlapped, forward_stage, forward_micro_batch, backward_stage,
          backward_micro_batch};
}

/// 'F', 'I', 'W', 'B'; 'O' for kOverlapped.
[[nodiscard]] char letter(ActionKind kind);

/// "0F0", "(0F7;7B3)OVERLAP_F_B".
[[nodiscard]] std::string action_text(const Action& action);

struct Schedule {
  std::string name;
  std::uint32_t ranks = 0;
  std::uint32_t stages = 0;         ///< counts both directions' copies (DualPipe, Chimera)
  std::uint32_t micro_batches = 0;  ///< of the smallest size, if sizes differ by stage
  std::vector<std::uint32_t> rank_of_stage;   ///< by stage
  std::vector<std::vector<Action>> actions;   ///< by rank, in the order of execution

  [[nodiscard]] std::size_t action_count() const {
    std::size_t count = 0;
    for (const auto& list : actions) count += list.size();
    return count;
  }
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// The stages that each stage waits for, and the micro-batches that it computes.
//
// The forward of a stage waits for all its producers, the backward for all its consumers. Stages
// may cut the batch into micro-batches of different sizes: a stage whose micro-batch is twice its
// producer's waits for two of the producer's. Micro-batch numbers of a stage are
// [first_micro_batch, first_micro_batch + micro_batches), and number k covers the samples [(k -
// first) * size, (k - first + 1) * size) of the batch.
//
// Sources: chain, any pipeline; two directions, DualPipe and Chimera: two copies of the model,
// stage p+i being the second copy's stage i, on rank p-1-i; a DAG with sizes by stage, GraphPipe
// (arXiv 2406.17145, section 3).

struct StageNode {
  std::vector<std::uint32_t> producers;  ///< ascending
  std::vector<std::uint32_t> consumers;  ///< ascending
  std::uint32_t first_micro_batch = 0;
  std::uint32_t micro_batches = 0;
  std::uint32_t micro_batch_size = 1;    ///< in samples of the smallest size; at least 1
  friend bool operator==(const StageNode&, const StageNode&) = default;
};

struct StageGraph {
  std::vector<StageNode> stages;

  [[nodiscard]] std::uint32_t size() const {
    return static_cast<std::uint32_t>(stages.size());
  }
  friend bool operator==(const StageGraph&, const StageGraph&) = default;
};

/// Stage 0 to stage n-1, one after the other.
[[nodiscard]] StageGraph chain_graph(std::uint32_t stages, std::uint32_t micro_batches);

/// Two chains of `depth` stages: 0..depth-1 with the first half of the micro-batches, and
/// depth..2*depth-1 with the second half. `micro_batches` is even.
[[nodiscard]] StageGraph two_way_graph(std::uint32_t depth, std::uint32_t micro_batches);

using StageEdge = std::pair<std::uint32_t, std::uint32_t>;  ///< producer, consumer

/// Any DAG. `sizes` has a micro-batch size for each stage (empty: all 1); `samples` is the whole
/// batch in the same unit. Faults: an unknown stage, an edge given twice, a cycle, a size that does
/// not divide the batch (with the nearest batch).
[[nodiscard]] Result<StageGraph> make_stage_graph(std::uint32_t stages,
                                                  const std::vector<StageEdge>& edges,
                                                  const std::vector<std::uint32_t>& sizes,
                                                  std::uint32_t samples);

/// Micro-batch numbers [first, second) of `to` that share a sample with micro-batch `micro_batch`
/// of `from`. Exact if the batches of both end together; always within the micro-batches of `to`.
[[nodiscard]] std::pair<std::uint32_t, std::uint32_t> overlapping(const StageNode& from,
                                                                  std::uint32_t micro_batch,
                                                                  const StageNode& to);

/// Stages, producers before consumers; fewer than all if there is a cycle.
[[nodiscard]] std::vector<std::uint32_t> topological_order(const StageGraph& graph);

/// Stages on the longest path: the depth of the pipeline.
[[nodiscard]] std::uint32_t depth(const StageGraph& graph);

}  // namespace bubblesim::pipeline
