// Device memory of a rank: what it always holds, and what each micro-batch adds while it is
// between its forward and its backward pass.
#pragma once

#include <cstdint>

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
/// precisions, optimiser states (model::optimizer_memory), each divided by the
/// data-parallel size from the stage of sharding on that splits it.
[[nodiscard]] StaticMemory static_memory(const JobPlan& plan, std::uint32_t pipeline);

/// What a micro-batch of a stage keeps from its forward to its backward pass.
[[nodiscard]] double activation_bytes(const JobPlan& plan, std::uint32_t stage);

/// The most that a layer of the rank needs besides while its backward pass runs.
[[nodiscard]] double working_bytes(const JobPlan& plan, std::uint32_t pipeline);

/// Peak of a rank over the schedule.
struct MemoryNeed {
  StaticMemory fixed;
  double activations = 0;  ///< at the peak
  double working = 0;
  [[nodiscard]] double total() const { return fixed.total() + activations + working; }
};
[[nodiscard]] MemoryNeed memory_need(const JobPlan& plan, std::uint32_t pipeline);

/// Elements of parameters on a rank, apart from and of experts.
struct Elements {
  double shared = 0;
  double experts = 0;
};
[[nodiscard]] Elements elements_of(const JobPlan& plan, std::uint32_t pipeline);

}  // namespace bubblesim::synth
