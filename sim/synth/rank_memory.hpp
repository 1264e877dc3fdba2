// Device memory of a rank: what it always holds, and what each micro-batch adds while it is
// between its forward and its backward pass.
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
/// precisions, optimiser states (model::optimizer_memory). Each is divided by the
/// data-parallel size if the plan's stage of sharding splits it.
[[nodiscard]] StaticMemory static_memory(const ParallelPlan& plan, std::uint32_t pipeline);

/// What a micro-batch of a stage keeps on the GPU.
struct KeptBytes {
  double forward = 0;           ///< from its forward pass on
  double after_input_grad = 0;  ///< where the backward pass is split: from its first half on
};
[[nodiscard]] KeptBytes activation_bytes(const ParallelPlan& plan, std::uint32_t stage);

/// Activations that a rank holds as its actions go by.
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

/// The most that a layer of the rank needs besides while its backward pass runs: gradients of
/// activations; with sharded parameters, the layer's gathered parameters and whole gradients; and
/// the buffers of HostPlan::activations, of 2 (`ahead` + 1) layers.
[[nodiscard]] double working_bytes(const ParallelPlan& plan, std::uint32_t pipeline);

/// Keys and values of the responses that a rank which trains generates; 0 where it generates none.
[[nodiscard]] double own_rollout_cache(const ParallelPlan& plan);

/// Peak of a rank over the schedule. The greatest memory mark of the rank's program is its total.
struct MemoryNeed {
  StaticMemory fixed;
  double activations = 0;  ///< at the peak; or a rollout's keys and values, where they are more
  double working = 0;
  [[nodiscard]] double total() const { return fixed.total() + activations + working; }
};
[[nodiscard]] MemoryNeed memory_need(const ParallelPlan& plan, std::uint32_t pipeline);

/// Numbers of parameters: those outside experts, and those of experts.
struct Elements {
  double shared = 0;
  double experts = 0;
};
/// Parameters that a rank holds, the head's own copy of a tied embedding included.
[[nodiscard]] Elements elements_of(const ParallelPlan& plan, std::uint32_t pipeline);
/// The part of `elements` that one data-parallel replica holds when they are sharded.
[[nodiscard]] double split_over_replicas(const ParallelPlan& plan, const Elements& elements);
/// Elements of all tensors of a list.
[[nodiscard]] double sum(const std::vector<double>& tensors);
[[nodiscard]] Elements elements_of_layer(const ParallelPlan& plan, std::uint32_t layer);
/// What a rank updates: its part, where the optimiser is sharded.
[[nodiscard]] double own_elements(const ParallelPlan& plan, std::uint32_t pipeline);

/// When a replica hands over all but its part of the gradients.
enum class Scattering : std::uint8_t {
  kAtEnd,          ///< each stage's, in its last backward pass of the iteration
  kEachRun,        ///< in the last of a row of backward passes of one stage
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
