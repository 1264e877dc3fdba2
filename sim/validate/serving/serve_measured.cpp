#include "sim/validate/serving/serve_measured.hpp"

#include <memory>
#include <utility>

#include "sim/base/counters.hpp"
#include "sim/base/json.hpp"
#include "sim/step_cost/layer_file.hpp"
#include "sim/step_cost/model_times.hpp"
#include "sim/step_cost/recorded_times.hpp"
#include "sim/step_cost/steps_file.hpp"
#include "sim/step_cost/table_times.hpp"
#include "sim/text/counter_text.hpp"
#include "sim/validate/serving/group_server.hpp"

namespace bubblesim::validate {
namespace {

constexpr CounterSpec kCacheComputed{
    "kv_cache_size_computed", Severity::kNotice,
    "runs whose number of KV blocks was not recorded; computed from memory, weights and what the "
    "engine reserves"};

constexpr CounterSpec kNoGraphs{
    "steps_without_graphs", Severity::kNotice,
    "runs whose engine captured no CUDA graphs: what it takes the host to launch each kernel is "
    "not in the simulated times"};

std::unique_ptr<step_cost::KernelTimes> kernel_times(const ServerSetup& setup,
                                                     const step_cost::ServerLayout& layout) {
  if (setup.layers) {
    return std::make_unique<step_cost::TableTimes>(**setup.layers->of_tensor(layout.tensor),
                                                   setup.transformer(), layout,
                                                   setup.gpu.sm_count);
  }
  const step_cost::ModelTimes model(setup.model, layout, setup.gpu, *setup.efficiency);
  if (!setup.steps) return std::make_unique<step_cost::ModelTimes>(model);
  return std::make_unique<step_cost::RecordedTimes>(model, *setup.steps, setup.capture_sizes,
                                                    layout.data);
}

std::string costs_of(const ServerSetup& setup) {
  if (setup.layers) return setup.layers->source;
  const std::string model = "bubblesim's kernel model";
  return setup.steps ? model + ", corrected by steps of " + setup.steps->source : model;
}

CounterSet counters_of(const ServerSetup& setup, const step_cost::KernelTimes& kernels) {
  CounterSet out;
  kernels.add_counters(out);
  if (setup.layers) {
    step_cost::count_tables(*setup.layers, setup.model, setup.gpu.name, out);
  }
  if (setup.steps && !setup.steps->gpu.empty() && setup.steps->gpu != setup.gpu.name) {
    out.add(step_cost::kRecordedOnOtherGpu);
  }
  if (setup.capture_sizes.empty()) out.add(kNoGraphs);
  if (setup.blocks_computed) out.add(kCacheComputed);
  return out;
}

std::int64_t ns(SimTime at) { return (at - kSimStart).count(); }

Json answer_of(const ServerSetup& setup, const ServedLoad& load, const CounterSet& counters) {
  Json out = {{"gpu", setup.gpu.name},
              {"step_times", costs_of(setup)},
              {"prefix_caching", setup.scheduler.enable_prefix_caching},
              {"steps", load.steps},
              {"preemptions", load.counts.preemptions},
              {"prefix_hit_tokens", load.counts.prefix_hit_tokens},
              {"counters", counters_object(counters)}};
  for (const SimulatedRequest& request : load.requests) {
    out["requests"].push_back({{"queued_ns", ns(request.queued)},
                               {"first_token_ns", ns(request.finished.first_token)},
                               {"last_token_ns", ns(request.finished.last_token)},
                               {"preemptions", request.finished.preemptions}});
  }
  return out;
}

CheckedResult<SetupRequest> setup_of(const ServeSources& sources) {
  SetupRequest out{sources.configs, sources.engine, {}, {}};
  if (!sources.layers.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(out.layers, step_cost::read_layers_at(sources.layers));
  }
  if (!sources.steps.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(out.steps, step_cost::read_steps_file(sources.steps));
  }
  return out;
}

}  // namespace

CheckedResult<Json> serve_measured(std::string_view settings, const MeasuredLoad& load,
                                   const ServeSources& sources) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document,
                             JsonDocument::parse(settings, "settings"));
  BUBBLESIM_ASSIGN_OR_RETURN(const ServerSettings server,
                             read_whole(document, read_server_settings));
  BUBBLESIM_ASSIGN_OR_RETURN(const SetupRequest request, setup_of(sources));
  BUBBLESIM_ASSIGN_OR_RETURN(const ServerSetup setup, set_up_server(server, load, request));
  const auto kernels = kernel_times(setup, server.layout);
  step_cost::EngineCost cost(*kernels, setup.transformer(), server.layout, setup.engine,
                             setup.capture_sizes);
  const ServedLoad served =
      serve_group(setup.scheduler, server.layout.data, load.requests, cost);
  return answer_of(setup, served, counters_of(setup, *kernels));
}

}  // namespace bubblesim::validate
