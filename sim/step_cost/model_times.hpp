// Kernel times from bubblesim's own kernel model, for engines without a profile: the kernels of
// sim/model/inference_work.hpp, each as long as sim/model/kernel_time.hpp says, and the gap between
// one operation and the next in the stream, or in a captured graph, as a run has it.
#pragma once

#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/inference_work.hpp"
#include "sim/step_cost/engine_cost.hpp"

namespace bubblesim::step_cost {

class ModelTimes final : public KernelTimes {
 public:
  /// Everything outlives this. Precondition: inference_work's of this model and split can be made
  /// (check with check_work).
  ModelTimes(const model::ModelSpec& model, const ServerLayout& layout,
             const hardware::GpuSpec& gpu, const model::Efficiency& efficiency,
             model::Precision precision = model::Precision::kBf16);

  /// Fault: the model is no decoder, or cannot be split so.
  [[nodiscard]] static Result<void> check_work(const model::ModelSpec& model,
                                               const ServerLayout& layout);

  /// Experts are among the kernels of the batch.
  [[nodiscard]] double batch_us(const Batch& batch) override;
  [[nodiscard]] double experts_us(double group_tokens) override;
  void add_counters(CounterSet& counters) const override;
  /// Microseconds of a batch with these sums, launched as a graph or kernel by kernel.
  [[nodiscard]] double sums_us(const model::IterationSums& sums, bool in_graph) const;

 private:
  const model::ModelSpec& model_;
  model::Split split_;
  const hardware::GpuSpec& gpu_;
  const model::Efficiency& efficiency_;
  model::Precision precision_;
};

}  // namespace bubblesim::step_cost
