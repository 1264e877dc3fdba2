// Kernel times of a server's steps from measurements, whatever form these have.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/serving/step.hpp"
#include "sim/step_cost/engine_cost.hpp"
#include "sim/synth/server_plan.hpp"
#include "sim/synth/step_kernels.hpp"

namespace bubblesim::run {

struct MeasuredKernels {
  synth::StepKernelsMaker maker;
  CounterSet counters;  ///< of another GPU's times, of steps beyond them
};

using KernelTimesMaker = std::function<std::unique_ptr<step_cost::KernelTimes>()>;

struct AskedStep {
  serving::ScheduledStep step;
  std::uint32_t tokens;  ///< that the matrix products see
};
/// The step with as many tokens, sequences and as long contexts as the scheduler allows at once.
[[nodiscard]] AskedStep largest_step(const serving::SchedulerSpec& spec);
/// The server's GPUs, as costs of steps see them.
[[nodiscard]] step_cost::ServerLayout layout_of(const synth::ServerPlan& plan);

/// `asked`: steps whose times say what the measurements lack.
[[nodiscard]] MeasuredKernels measured_kernels(KernelTimesMaker times,
                                               const synth::ServerPlan& plan,
                                               const std::vector<AskedStep>& asked);

}  // namespace bubblesim::run
