// A plan resolved for a model and a cluster: the data that all ranks' programs share.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/hardware/cluster_spec.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/pipeline/schedule.hpp"
#include "sim/synth/plan_spec.hpp"
#include "sim/synth/rank_grid.hpp"
#include "sim/synth/software_spec.hpp"
#include "sim/synth/stage_layers.hpp"
#include "sim/synth/timed_model.hpp"

namespace bubblesim::synth {

/// A job to synthesise.
struct JobRequest {
  model::ModelSpec model;
  PlanSpec plan;
  hardware::ClusterSpec cluster;   ///< with at least as many nodes as the plan needs
  hardware::GpuSpec gpu;
  model::Efficiency efficiency;
  SoftwareSpec software;
};

/// Times the job's kernels; refers to the request.
[[nodiscard]] inline KernelTimer timer_of(const JobRequest& request) {
  return {request.gpu, request.efficiency, request.software.slowdown, request.plan.sm_carveout};
}

/// A stage of the schedule: its layers, and its rank in the pipeline.
struct Stage {
  StageLayers layers;
  std::uint32_t pipeline = 0;
  std::vector<double> sent_bytes;  ///< to each consumer (StageNode::consumers), a micro-batch
};

struct ParallelPlan {
  JobRequest request;
  RankGrid grid;
  pipeline::Schedule schedule;
  pipeline::StageGraph graph;
  TimedModel model;
  std::vector<Stage> stages;   ///< by the schedule's stage numbers
  std::uint32_t copies = 1;    ///< of the model in a pipeline: 2 in DualPipe and Chimera
  /// If micro-batches are split into parts (PlanSpec::tensor_overlap): by part, the offset from a
  /// kind of layer to the part's own kind (ModelWork::kinds).
  std::vector<std::uint32_t> part_kinds;
  /// Tokens of each expert rank, over the mean of all expert ranks; by RankGrid::expert_rank.
  std::vector<double> expert_loads;
  /// By RankGrid::expert_rank, if expert ranks are simulated one by one and their loads differ: the
  /// offset from a kind of layer to the rank's own kind. Empty: all ranks work on the busiest one's
  /// tokens.
  std::vector<std::uint32_t> expert_kinds;
  /// Added to the index of a layer's kind, gives its kind for the mean number of tokens.
  std::uint32_t mean_kinds = 0;

  [[nodiscard]] const PlanSpec& plan() const { return request.plan; }
  /// Kind of layer `layer` (an index into ModelWork::layers).
  [[nodiscard]] std::uint32_t kind_of(std::uint32_t layer) const {
    return model.work.layers[layer];
  }
  /// Kind of the layer for the rank at `place`.
  [[nodiscard]] std::uint32_t own_kind(std::uint32_t layer, const RankPlace& place) const {
    return kind_of(layer) + (expert_kinds.empty() ? 0 : expert_kinds[grid.expert_rank(place)]);
  }
  /// Whether first and last layer are on different ranks, so that each holds a tied matrix.
  [[nodiscard]] bool embeddings_apart() const {
    return stages.front().pipeline != stages.back().pipeline;
  }
};

/// Checks and resolves the plan. Faults name what does not fit and the nearest value that does: a
/// split that does not divide the model, the batch or the cluster; a schedule that cannot be made.
[[nodiscard]] CheckedResult<ParallelPlan> plan_job(JobRequest request);

/// Like plan_job, without checking that the plan fits the device's memory.
[[nodiscard]] CheckedResult<ParallelPlan> plan_without_memory(JobRequest request);

}  // namespace bubblesim::synth
