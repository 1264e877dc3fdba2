#include "sim/run/measured_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace bubblesim::run {
namespace {

class TimedKernels final : public synth::StepKernels {
 public:
  TimedKernels(std::unique_ptr<step_cost::KernelTimes> times, step_cost::CaptureSizes sizes)
      : times_(std::move(times)), sizes_(std::move(sizes)) {}

  Duration kernel_time(const serving::ScheduledStep& step, workload::StepTokens tokens) override {
    step_cost::set_batch(step, sizes_, batch_);
    batch_.padded_tokens = std::max(batch_.padded_tokens, tokens.own);
    batch_.group_tokens = tokens.group;
    const double us = times_->batch_us(batch_) + times_->experts_us(tokens.group);
    return std::max(Duration{1}, Duration{std::llround(1e3 * us)});
  }

  void add_counters(CounterSet& counters) const { times_->add_counters(counters); }

 private:
  std::unique_ptr<step_cost::KernelTimes> times_;
  step_cost::CaptureSizes sizes_;
  step_cost::Batch batch_;
};

}  // namespace

AskedStep largest_step(const serving::SchedulerSpec& spec) {
  serving::ScheduledStep step;
  const std::uint32_t decodes = std::min(spec.max_num_seqs, spec.max_num_batched_tokens) - 1;
  for (std::uint32_t i = 0; i < decodes; ++i) step.add({.context = spec.max_model_len - 1});
  const std::uint32_t chunk =
      std::min(spec.max_num_batched_tokens - decodes, spec.max_model_len - 1);
  step.add({.new_tokens = chunk, .context = spec.max_model_len - chunk, .prefill = true});
  return {std::move(step), spec.max_num_batched_tokens};
}

step_cost::ServerLayout layout_of(const synth::ServerPlan& plan) {
  step_cost::ServerLayout layout;
  layout.tensor = plan.split.tensor;
  layout.data = plan.members;
  layout.expert_parallel = plan.shares_experts();
  return layout;
}

MeasuredKernels measured_kernels(KernelTimesMaker times, const synth::ServerPlan& plan,
                                 const std::vector<AskedStep>& asked) {
  step_cost::CaptureSizes sizes = step_cost::vllm_capture_sizes(plan.scheduler);
  MeasuredKernels made;
  TimedKernels kernels(times(), sizes);
  for (const auto& [step, tokens] : asked) {
    (void)kernels.kernel_time(step, {tokens, plan.members * tokens});
  }
  kernels.add_counters(made.counters);
  made.maker = [times = std::move(times), sizes = std::move(sizes)] {
    return std::make_unique<TimedKernels>(times(), sizes);
  };
  return made;
}

}  // namespace bubblesim::run
