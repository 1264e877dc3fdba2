// How long an engine's steps take: kernels of the batch, exchanges between GPUs, the host.
#pragma once

#include <span>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/time.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/serving/step.hpp"
#include "sim/step_cost/batch.hpp"
#include "sim/step_cost/engine_spec.hpp"
#include "sim/step_cost/layout.hpp"

namespace bubblesim::step_cost {

/// Times of kernels on one GPU of a server.
class KernelTimes {
 public:
  virtual ~KernelTimes() = default;
  /// Microseconds of a batch's kernels on one GPU, without exchanges and without experts.
  [[nodiscard]] virtual double batch_us(const Batch& batch) = 0;
  /// Microseconds of all mixtures of experts on one GPU in a step in which the members of its group
  /// have `group_tokens` together. Called for models with experts only.
  [[nodiscard]] virtual double experts_us(double group_tokens) = 0;
  /// What was assumed on the way.
  virtual void add_counters(CounterSet& counters) const = 0;
};

/// Steps of a server, or of a group of data-parallel members that step together: their exchanges
/// make each wait for the slowest.
class EngineCost {
 public:
  /// Everything outlives this.
  EngineCost(KernelTimes& kernels, const model::TransformerSpec& model,
             const ServerLayout& layout, const EngineSpec& engine, CaptureSizes capture_sizes);

  /// The time from the step's start until the schedulers know its tokens. One step a member; null:
  /// it has nothing to do, and runs an idle batch. A `queued` step was scheduled while another ran:
  /// what the host does to prepare it is hidden behind that.
  [[nodiscard]] Duration step_time(std::span<const serving::ScheduledStep* const> steps,
                                   bool queued);

 private:
  KernelTimes& kernels_;
  const model::TransformerSpec& model_;
  const ServerLayout& layout_;
  const EngineSpec& engine_;
  CaptureSizes capture_sizes_;
  std::vector<Batch> batches_;  ///< by member; kept for their memory
  bool has_stepped_ = false;
};

}  // namespace bubblesim::step_cost
