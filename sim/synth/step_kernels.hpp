// What the kernels of an engine's step take together, where something else than the kernel model
// says it: a profiler's tables of layer times, or recorded steps.
#pragma once

#include <functional>
#include <memory>

#include "sim/base/time.hpp"
#include "sim/serving/step.hpp"
#include "sim/workload/step_program.hpp"

namespace bubblesim::synth {

class StepKernels {
 public:
  virtual ~StepKernels() = default;
  /// On one of the server's GPUs, from the start of the first kernel to the end of the last one,
  /// without exchanges and without a draft model's passes; > 0.
  [[nodiscard]] virtual Duration kernel_time(const serving::ScheduledStep& step,
                                             workload::StepTokens tokens) = 0;
};

/// One for each program: it may keep what it was asked. Null: the kernel model says it.
using StepKernelsMaker = std::function<std::unique_ptr<StepKernels>()>;

}  // namespace bubblesim::synth
