// Device memory of a rank: its constant part, and the part of each micro-batch between its forward
// and its backward pass.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/synth/job_plan.hpp"

namespace bubblesim::synth {

/// Bytes on one GPU.
struct StaticMemory {
  double parameters = 0;   ///< in the training precision
  double gradients = 0;
  double optimizer = 0;    ///< fp32 copy and moments
  [[nodiscard]] double total() const { return parameters + gradients + optimizer; }
};

/// ZeRO's accounting (Rajbhandari et al. 2020, section 3): parameters and gradients in their
/// precisions, optimiser states (model::optimizer_memory). The data-parallel size divides each that
/// the plan shards.
[[nodiscard]] StaticMemory static_memory(const ParallelPlan& plan, std::uint32_t pipeline);

/// Bytes that a micro-batch keeps on the GPU of a stage.
struct KeptBytes {
  double forward = 0;           ///< from its forward pass on
  double after_input_grad = 0;  ///< if the backward pass is split: from its first half on
};
[[nodiscard]] KeptBytes activation_bytes(const ParallelPlan& plan, std::uint32_t stage);

/// Activations of a rank while its actions run.
class HeldActivations {
 public:
  explicit HeldActivations(const ParallelPlan& plan);

  void begin_action(const pipeline::Action& action);
  void end_action(const pipeline::Action& action);
  [[nodiscard]] double bytes() const { return bytes_; }

 private:
  std::vector<KeptBytes> kept_;  ///< by stage
  double bytes_ = 0;
};

/// The most that a layer of the rank needs in addition during its backward pass: gradients of
/// activations; with sharded parameters, the layer's gathered parameters and whole gradients; and
/// the buffers of HostPlan::activations, of 2 (`ahead` + 1) layers.
[[nodiscard]] double working_bytes(const ParallelPlan& plan, std::uint32_t pipeline);

/// Keys and values of the responses that a training rank generates; 0: none.
[[nodiscard]] double own_rollout_cache(const ParallelPlan& plan);

/// A rank's peak over the schedule. Its total is the greatest memory mark of the rank's program.
struct MemoryNeed {
  StaticMemory fixed;
  double activations = 0;  ///< at the peak; or a rollout's keys and values, if larger
  double working = 0;
  [[nodiscard]] double total() const { return fixed.total() + activations + working; }
};
[[nodiscard]] MemoryNeed memory_need(const ParallelPlan& plan, std::uint32_t pipeline);

/// Numbers of parameters: outside of experts, and in experts.
struct Elements {
  double shared = 0;
  double experts = 0;
};
/// Parameters of a rank, including the head's own copy of a tied embedding.
[[nodiscard]] Elements elements_of(const ParallelPlan& plan, std::uint32_t pipeline);
/// The part of `elements` on one data-parallel replica when they are sharded.
[[nodiscard]] double split_over_replicas(const ParallelPlan& plan, const Elements& elements);
/// Elements of all tensors of a list.
[[nodiscard]] double sum(const std::vector<double>& tensors);
[[nodiscard]] Elements elements_of_layer(const ParallelPlan& plan, std::uint32_t layer);
/// Elements that a rank updates: its part, if the optimiser is sharded.
[[nodiscard]] double own_elements(const ParallelPlan& plan, std::uint32_t pipeline);

/// When a replica scatters gradients, keeping its own part.
enum class Scattering : std::uint8_t {
  kAtEnd,          ///< for each stage, in its last backward pass of the iteration
  kEachRun,        ///< in the last of consecutive backward passes of one stage
  kEachMicroBatch
};
/// ZeRO-2 scatters after each micro-batch (DeepSpeed, stage_1_and_2.py, reduce_ipg_grads). In a
/// pipeline it first adds up the gradients of a stage's run, and scatters in the last pass of the
/// run (Megatron-LM, schedules.py, is_last_microbatch_for_model_chunk). Without overlap of exchange
/// and backward passes it scatters at the end.
[[nodiscard]] Scattering scattering_of(const PlanSpec& plan);

/// Calls `visit` with each layer (into ModelWork::layers) that the rank holds.
template <class Visit>
void for_each_layer(const ParallelPlan& plan, std::uint32_t pipeline, Visit visit) {
  for (const Stage& stage : plan.stages) {
    if (stage.pipeline != pipeline) continue;
    for (std::uint32_t i = stage.layers.first; i < stage.layers.last; ++i) visit(i);
  }
}

}  // namespace bubblesim::synth
