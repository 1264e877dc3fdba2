// Stages of a pipeline: the layers of each stage; for graph pipelines, the plan's stages, and the
// bytes between stages.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/pipeline/schedule.hpp"
#include "sim/synth/plan_spec.hpp"
#include "sim/synth/timed_model.hpp"

namespace bubblesim::synth {

/// Layers [first, last) of ModelWork::layers.
struct StageLayers {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  friend bool operator==(const StageLayers&, const StageLayers&) = default;
};

/// Splits a model into `stages` runs of layers. Transformers: equally many blocks in each stage,
/// layers before the blocks in the first, layers after them in the last, as Megatron-LM does. Other
/// models: the split with the shortest longest stage. `blocks_per_stage` overrides the split
/// (transformers: blocks; others: layers). Fault: the number does not divide, with the nearest that
/// does.
[[nodiscard]] Result<std::vector<StageLayers>> split_layers(
    const TimedModel& model, std::uint32_t stages,
    const std::vector<std::uint32_t>& blocks_per_stage);

/// The dependencies of the stages in `PlanSpec::stages`, and their micro-batches.
[[nodiscard]] Result<pipeline::StageGraph> graph_of(const PlanSpec& plan);

/// Layers of each stage. Faults: a branch that the model lacks, with the nearest; branches that do
/// not follow each other; a layer in no stage or in two.
[[nodiscard]] Result<std::vector<StageLayers>> graph_layers(const PlanSpec& plan,
                                                            const model::ModelSpec& model,
                                                            const model::ModelWork& work);

/// Bytes that each stage sends to each of its consumers (as in StageNode::consumers) for one of
/// its own micro-batches. A layer's output goes to each stage that reads it, directly if there is
/// an edge, else through other stages, once along each edge. `layers`: by stage. Fault: a stage
/// that reads an output from which no path leads to it.
[[nodiscard]] Result<std::vector<std::vector<double>>> sent_bytes(
    const PlanSpec& plan, const pipeline::StageGraph& graph, const std::vector<StageLayers>& layers,
    const model::ModelWork& work);

}  // namespace bubblesim::synth
