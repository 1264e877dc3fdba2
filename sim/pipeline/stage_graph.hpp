// Which stage waits for which, and which micro-batches each of them sees.
//
// The forward of a stage waits for all its producers, the backward for all its consumers. Stages
// may cut the batch into micro-batches of different sizes: a stage whose micro-batch is twice its
// producer's waits for two of the producer's. Micro-batch numbers of a stage are
// [first_micro_batch, first_micro_batch + micro_batches), and number k covers the samples
// [(k - first) * size, (k - first + 1) * size) of what flows along its edges.
//
// Sources: chain, any pipeline; two directions, DualPipe and Chimera: two copies of the model,
// stage p+i being the second copy's stage i, on rank p-1-i; a DAG with sizes by stage, GraphPipe
// (arXiv 2406.17145, section 3).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim::pipeline {

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
/// batch in the same unit. Faults: a stage that is not there, an edge given twice, a cycle, a size
/// that does not divide the batch (with the nearest batch).
[[nodiscard]] Result<StageGraph> make_stage_graph(std::uint32_t stages,
                                                  const std::vector<StageEdge>& edges,
                                                  const std::vector<std::uint32_t>& sizes,
                                                  std::uint32_t samples);

/// Micro-batch numbers [first, second) of `to` that hold a sample of micro-batch `micro_batch` of
/// `from`. Exact where batches end together; never outside of what `to` has.
[[nodiscard]] std::pair<std::uint32_t, std::uint32_t> overlapping(const StageNode& from,
                                                                  std::uint32_t micro_batch,
                                                                  const StageNode& to);

/// Stages, producers before consumers; fewer than all if there is a cycle.
[[nodiscard]] std::vector<std::uint32_t> topological_order(const StageGraph& graph);

/// Stages on the longest path: the depth of the pipeline.
[[nodiscard]] std::uint32_t depth(const StageGraph& graph);

}  // namespace bubblesim::pipeline
