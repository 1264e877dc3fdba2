#include "sim/run/model_filler.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "sim/program/program.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/serving/step.hpp"
#include "sim/step_cost/engine_cost.hpp"
#include "sim/step_cost/layer_tables.hpp"
#include "sim/step_cost/model_times.hpp"
#include "sim/step_cost/table_times.hpp"
#include "sim/synth/find_job.hpp"
#include "sim/synth/inference_program.hpp"
#include "sim/synth/server_program.hpp"
#include "sim/synth/synthesise.hpp"

namespace bubblesim::run {
namespace {

class TimedKernels final : public synth::StepKernels {
 public:
  explicit TimedKernels(std::unique_ptr<step_cost::KernelTimes> times) : times_(std::move(times)) {}

  Duration kernel_time(const serving::ScheduledStep& step,
                       const serving::StepShape& shape) override {
    step_cost::set_batch(step, shape, batch_);
    const double us = times_->batch_us(batch_) + times_->experts_us(shape.group);
    return std::max(Duration{1}, Duration{std::llround(1e3 * us)});
  }

  void add_counters(CounterSet& counters) const { times_->add_counters(counters); }

 private:
  std::unique_ptr<step_cost::KernelTimes> times_;
  step_cost::Batch batch_;
};

using KernelTimesMaker = std::function<std::unique_ptr<step_cost::KernelTimes>()>;

/// The step with the most tokens, the most sequences and the longest contexts of the scheduler.
serving::ScheduledStep largest_step(const serving::SchedulerSpec& spec) {
  const std::uint32_t decodes = std::min(spec.max_num_seqs, spec.max_num_batched_tokens) - 1;
  serving::ScheduledStep step = serving::decode_step(1, decodes, spec.max_model_len - 1);
  const std::uint32_t chunk =
      std::min(spec.max_num_batched_tokens - decodes, spec.max_model_len - 1);
  step.add({.new_tokens = chunk, .context = spec.max_model_len - chunk, .prefill = true});
  return step;
}

/// The layout of the server's GPUs for the costs of steps.
step_cost::ServerLayout layout_of(const synth::ServerPlan& plan) {
  step_cost::ServerLayout layout;
  layout.tensor = plan.split.tensor;
  layout.data = plan.members;
  layout.expert_parallel = plan.shares_experts();
  return layout;
}

/// Computes the times of the largest step, whose matrix products have all tokens that a step may
/// have, and of `further` ones, to find gaps in the measurements.
MeasuredKernels measured_kernels(KernelTimesMaker times, const synth::ServerPlan& plan,
                                 const std::vector<serving::ScheduledStep>& further) {
  const step_cost::CapturedGraphs captured = step_cost::vllm_graphs(plan.scheduler);
  MeasuredKernels made;
  TimedKernels kernels(times());
  const auto ask = [&](const serving::ScheduledStep& step, std::uint32_t least) {
    serving::StepShape shape = step_cost::shape_of(step, captured);
    shape.padded = std::max(least, shape.padded);
    shape.group = plan.members * shape.padded;
    (void)kernels.kernel_time(step, shape);
  };
  ask(largest_step(plan.scheduler), plan.scheduler.max_num_batched_tokens);
  for (const serving::ScheduledStep& step : further) ask(step, 0);
  kernels.add_counters(made.counters);
  made.maker = [times = std::move(times)] { return std::make_unique<TimedKernels>(times()); };
  return made;
}

/// The file and its tables, which live as long as a server uses them.
struct Source {
  step_cost::LayerTables tables;
  const step_cost::RankTables* rank = nullptr;  ///< into `tables`
  model::TransformerSpec model;
  step_cost::ServerLayout layout;
  std::uint32_t sm_count = 0;
};

}  // namespace

Result<MeasuredKernels> load_layer_kernels(const std::string& path,
                                           const synth::ServerPlan& plan) {
  auto tables = step_cost::read_layer_file(path);
  if (!tables) return tl::make_unexpected(std::move(tables.error().front()));
  auto source = std::make_shared<Source>();
  source->tables = *std::move(tables);
  const model::ModelSpec& model = plan.request.model;
  const auto rank = step_cost::tables_for(source->tables, model, plan.split.tensor);
  if (!rank) return fail(path, {}, rank.error().message);
  source->rank = *rank;
  source->model = std::get<model::TransformerSpec>(model.network);
  source->layout = layout_of(plan);
  source->sm_count = plan.request.gpu.sm_count;
  const auto times = [source]() -> std::unique_ptr<step_cost::KernelTimes> {
    return std::make_unique<step_cost::TableTimes>(*source->rank, source->model, source->layout,
                                                   source->sm_count);
  };
  MeasuredKernels made = measured_kernels(times, plan, {});
  step_cost::count_tables(source->tables, model, plan.request.gpu.name, made.counters);
  if (source->rank->mixed.empty() && plan.scheduler.max_num_seqs > 1) {
    made.counters.add(kLayersOfOneSequence);
  }
  return made;
}

namespace {

// ---- Kernel times of a server's steps from a file of recorded ones (bubblesim.steps).

/// The recorded steps and the kernel model that they correct, which live as long as a server uses
/// them.
struct RecordedSource {
  step_cost::RecordedSteps steps;
  model::ModelSpec model;
  step_cost::ServerLayout layout;
  step_cost::CapturedGraphs captured;
  hardware::GpuSpec gpu;
  model::Efficiency efficiency;
  model::Precision precision;
};

// Faults: the first one of the file.
Result<MeasuredKernels> load_recorded_kernels(const std::string& path,
                                              const synth::ServerPlan& plan) {
  auto steps = step_cost::read_steps_file(path);
  if (!steps) return tl::make_unexpected(std::move(steps.error().front()));
  const synth::InferenceRequest& request = plan.request;
  const auto source = std::make_shared<const RecordedSource>(RecordedSource{
      *std::move(steps), request.model, layout_of(plan),
      step_cost::vllm_graphs(plan.scheduler), request.gpu, request.efficiency,
      request.precision});
  const auto times = [source]() -> std::unique_ptr<step_cost::KernelTimes> {
    const step_cost::ModelTimes model(source->model, source->layout, source->gpu,
                                      source->efficiency, source->precision);
    return std::make_unique<step_cost::RecordedTimes>(model, source->steps, source->captured,
                                                      source->layout.data);
  };
  const std::uint32_t query = plan.scheduler.decode_query_len();
  MeasuredKernels made =
      measured_kernels(times, plan,
                       {serving::decode_step(query, 1, 1),
                        serving::decode_step(query, plan.scheduler.max_num_seqs, 1)});
  const std::string& recorded = source->steps.gpu;
  if (!recorded.empty() && recorded != request.gpu.name) {
    made.counters.add(step_cost::kRecordedOnOtherGpu);
  }
  return made;
}

Bytes whole_bytes(double bytes) { return {static_cast<std::uint64_t>(std::ceil(bytes))}; }

Result<LoadedFiller> make_server(const synth::EngineNames& engine,
                                 const synth::InferenceRequest& request) {
  synth::EngineSettings settings = engine.settings;
  if (engine.accepted_file) {
    serving::Speculation& drafts = settings.scheduler.speculation;
    BUBBLESIM_ASSIGN_OR_RETURN(drafts.recorded,
                               serving::read_acceptance(*engine.accepted_file, drafts.tokens));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(synth::ServerPlan plan, synth::plan_server(request, settings));
  if (plan.scheduler.preemption == serving::CachePreemption::kSwap &&
      plan.scheduler.host_blocks == 0) {
    return fail("\"host_cache\" of " + std::to_string(settings.host_cache.value) +
                " bytes holds no block of " + std::to_string(std::llround(plan.block_bytes)) +
                "; expected more, or preemption \"recompute\"");
  }
  CounterSet counters;
  if (engine.layers || engine.steps) {
    BUBBLESIM_ASSIGN_OR_RETURN(MeasuredKernels kernels,
                               engine.layers ? load_layer_kernels(*engine.layers, plan)
                                             : load_recorded_kernels(*engine.steps, plan));
    plan.kernels = std::move(kernels.maker);
    counters = std::move(kernels.counters);
  }
  const Bytes memory = whole_bytes(plan.memory.total());
  const Shared<synth::ServerPlan> server(std::move(plan));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto steps, synth::ServerProgram::make(server));
  LoadedFiller made{steps->program(), memory, server};
  made.program.counters.merge(counters);
  return made;
}

Result<LoadedFiller> make(const synth::InferenceNames& names,
                          const synth::InferenceRequest& request) {
  if (names.engine) return make_server(*names.engine, request);
  BUBBLESIM_ASSIGN_OR_RETURN(synth::InferenceProgram batch, synth::inference_program(request));
  return LoadedFiller{std::move(batch.program), whole_bytes(batch.memory.total())};
}

}  // namespace

CheckedResult<LoadedFiller> load_model_filler(const FillerConfig& config,
                                              const hardware::GpuSpec& device,
                                              const std::string& device_folder) {
  const auto configs = std::filesystem::path(device_folder).parent_path().string();
  const auto& names = std::get<synth::InferenceNames>(config.program);
  BUBBLESIM_ASSIGN_OR_RETURN(const synth::InferenceRequest request,
                             synth::find_inference(names, device, configs));
  auto made = make(names, request);
  if (!made) {
    Error fault = made.error();
    fault.message = "filler \"" + config.name + "\": " + fault.message;
    return tl::make_unexpected(Errors{std::move(fault)});
  }
  return *std::move(made);
}

CheckedResult<LoadedFiller> load_train_filler(const FillerConfig& config,
                                              const hardware::GpuSpec& device,
                                              const std::string& device_folder) {
  synth::JobNames names = std::get<TrainProgram>(config.program).names;
  names.device = device;
  const std::string configs = std::filesystem::path(device_folder).parent_path().string();
  BUBBLESIM_ASSIGN_OR_RETURN(synth::JobRequest request, synth::find_job(names, configs));
  BUBBLESIM_ASSIGN_OR_RETURN(const synth::ParallelPlan plan, synth::plan_job(std::move(request)));
  synth::SynthesisedJob job = synth::synthesise(plan);
  if (job.world_size != 1) {
    return tl::make_unexpected(
        Errors{{{}, {}, "filler \"" + config.name + "\": its training job has " +
                            std::to_string(job.world_size) + " ranks; expected a plan of one"}});
  }
  return LoadedFiller{std::move(job.program.ranks.front()),
                      whole_bytes(job.memory.front().total())};
}

}  // namespace bubblesim::run
