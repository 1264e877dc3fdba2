#include "sim/run/recorded_kernels.hpp"

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
};

/// Of one token each, that a single one attends to.
AskedStep decode_step(std::uint32_t sequences) {
  AskedStep out{{}, sequences};
  for (std::uint32_t i = 0; i < sequences; ++i) out.step.add({.context = 1});
  return out;
}

}  // namespace

Result<MeasuredKernels> load_recorded_kernels(const std::string& path,
                                              const synth::ServerPlan& plan) {
  auto steps = step_cost::read_steps_file(path);
  if (!steps) return tl::make_unexpected(std::move(steps.error().front()));
  const synth::InferenceRequest& request = plan.request;
  const auto source = std::make_shared<const RecordedSource>(RecordedSource{
      *std::move(steps), request.model, layout_of(plan),
      step_cost::vllm_capture_sizes(plan.scheduler), request.gpu, request.efficiency,
      request.precision});
  const auto times = [source]() -> std::unique_ptr<step_cost::KernelTimes> {
    const step_cost::ModelTimes model(source->model, source->layout, source->gpu,
                                      source->efficiency, source->precision);
    return std::make_unique<step_cost::RecordedTimes>(model, source->steps, source->sizes,
                                                      source->layout.data);
  };
  MeasuredKernels made = measured_kernels(
      times, plan,
      {largest_step(plan.scheduler), decode_step(1), decode_step(plan.scheduler.max_num_seqs)});
  const std::string& recorded = source->steps.gpu;
  if (!recorded.empty() && recorded != request.gpu.name) {
    made.counters.add(step_cost::kRecordedOnOtherGpu);
  }
  return made;
}

}  // namespace bubblesim::run
