// Kernel times of a server's steps from a file of layer times (`bubblesim import layers`).
#pragma once

#include <string>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/synth/server_plan.hpp"
#include "sim/step_cost/layout.hpp"
#include "sim/synth/step_kernels.hpp"

namespace bubblesim::run {

struct MeasuredKernels {
  synth::StepKernelsMaker maker;
  CounterSet counters;  ///< of another GPU's times, of steps beyond them
};

/// As many tokens, sequences and as long contexts as the scheduler allows at once.
[[nodiscard]] serving::Step largest_step(const serving::SchedulerSpec& spec);
/// The server's GPUs, as costs of steps see them.
[[nodiscard]] step_cost::ServerLayout layout_of(const synth::ServerPlan& plan);

/// Faults: the first one of the file, no table of so many GPUs as the server has, tables with
/// experts for a model without, or without for one with.
[[nodiscard]] Result<MeasuredKernels> load_layer_kernels(const std::string& path,
                                                         const synth::ServerPlan& plan);

}  // namespace bubblesim::run
