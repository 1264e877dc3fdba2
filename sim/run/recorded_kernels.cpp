#include "sim/run/recorded_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "sim/step_cost/recorded_times.hpp"
#include "sim/step_cost/steps_file.hpp"

namespace bubblesim::run {
namespace {

/// What the kernel model is of, for as long as anybody asks it.
struct RecordedSource {
  step_cost::RecordedSteps steps;
  model::ModelSpec model;
  step_cost::ServerLayout layout;
  step_cost::CaptureSizes sizes;
  hardware::GpuSpec gpu;
  model::Efficiency efficiency;
  model::Precision precision;

  [[nodiscard]] step_cost::RecordedTimes times() const {
    return {step_cost::ModelTimes(model, layout, gpu, efficiency, precision), steps, sizes,
            layout.expert_parallel ? layout.data : 1};
  }
};

class RecordedKernels final : public synth::StepKernels {
 public:
  explicit RecordedKernels(std::shared_ptr<const RecordedSource> source)
      : source_(std::move(source)), times_(source_->times()) {}

  Duration of(const serving::Step& step, workload::StepTokens tokens) override {
    step_cost::set_batch(step, source_->sizes, batch_);
    batch_.padded_tokens = std::max(batch_.padded_tokens, tokens.own);
    batch_.group_tokens = tokens.group;
    return std::max(Duration{1}, Duration{std::llround(1e3 * times_.batch_us(batch_))});
  }

  void add_counters(CounterSet& counters) const { times_.add_counters(counters); }

 private:
  std::shared_ptr<const RecordedSource> source_;
  step_cost::RecordedTimes times_;
  step_cost::Batch batch_;
};

}  // namespace

Result<MeasuredKernels> load_recorded_kernels(const std::string& path,
                                              const synth::ServerPlan& plan) {
  auto steps = step_cost::read_steps_file(path);
  if (!steps) return tl::make_unexpected(std::move(steps.error().front()));
  auto source = std::make_shared<RecordedSource>();
  source->steps = *std::move(steps);
  source->model = plan.request.model;
  source->layout = layout_of(plan);
  source->sizes = step_cost::vllm_capture_sizes(plan.scheduler.max_num_seqs);
  source->gpu = plan.request.gpu;
  source->efficiency = plan.request.efficiency;
  source->precision = plan.request.precision;
  MeasuredKernels made;
  const std::string& recorded = source->steps.gpu;
  if (!recorded.empty() && recorded != plan.request.gpu.name) {
    made.counters.add(step_cost::kRecordedOnOtherGpu);
  }
  RecordedKernels asked(source);
  const std::uint32_t budget = plan.scheduler.max_num_batched_tokens;
  (void)asked.of(largest_step(plan.scheduler), {budget, plan.members * budget});
  for (const std::uint32_t sequences : {1U, plan.scheduler.max_num_seqs}) {
    serving::Step decode;
    for (std::uint32_t i = 0; i < sequences; ++i) decode.add({.context = 1});
    (void)asked.of(decode, {sequences, plan.members * sequences});
  }
  asked.add_counters(made.counters);
  made.maker = [source] { return std::make_unique<RecordedKernels>(source); };
  return made;
}

}  // namespace bubblesim::run
