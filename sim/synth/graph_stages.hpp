// Stages of a graph pipeline as a plan gives them, and what flows between stages.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/pipeline/stage_graph.hpp"
#include "sim/synth/plan_spec.hpp"
#include "sim/synth/stage_layers.hpp"

namespace bubblesim::synth {

/// Which stage waits for which, and in which micro-batches, as `PlanSpec::stages` says.
[[nodiscard]] Result<pipeline::StageGraph> graph_of(const PlanSpec& plan);

/// Layers of each stage. Faults: a branch that the model does not have, with the nearest; branches
/// that do not follow each other; a layer in no stage or in two.
[[nodiscard]] Result<std::vector<StageLayers>> graph_layers(const PlanSpec& plan,
                                                            const model::ModelSpec& model,
                                                            const model::ModelWork& work);

/// Bytes that each stage sends to each of its consumers (as in StageNode::consumers) for one of
/// its own micro-batches. A layer's output goes to each stage that reads it, straight where there
/// is an edge, else through other stages, once along each edge. `layers`: by stage. Fault: a stage
/// that reads what no path leads to.
[[nodiscard]] Result<std::vector<std::vector<double>>> sent_bytes(
    const PlanSpec& plan, const pipeline::StageGraph& graph, const std::vector<StageLayers>& layers,
    const model::ModelWork& work);

}  // namespace bubblesim::synth
