// A bundle's server as the simulator runs it: what was recorded, and the engine's defaults for what
// was not.
#pragma once

#include <optional>
#include <string>

#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/step_cost/batch.hpp"
#include "sim/step_cost/engine_spec.hpp"
#include "sim/step_cost/layer_tables.hpp"
#include "sim/step_cost/recorded_steps.hpp"
#include "sim/validate/serving/bundle.hpp"

namespace bubblesim::validate {

struct ServerSetup {
  hardware::GpuSpec gpu;
  model::ModelSpec model;  ///< a transformer
  step_cost::EngineSpec engine;
  serving::SchedulerSpec scheduler;
  step_cost::CaptureSizes capture_sizes;  ///< empty: it captured no graphs
  std::optional<step_cost::LayerTables> layers;  ///< nothing: the kernel model
  std::optional<step_cost::RecordedSteps> steps;  ///< that the kernel model is corrected by
  std::optional<model::Efficiency> efficiency;   ///< of the kernel model
  bool blocks_computed = false;  ///< the size of the KV cache was not recorded

  [[nodiscard]] const model::TransformerSpec& transformer() const;
};

struct SetupRequest {
  std::string configs;              ///< folder with devices/, models/, engines/, efficiency/
  std::string engine = "vllm-0.19"; ///< a file of configs/engines
  std::optional<step_cost::LayerTables> layers;
  std::optional<step_cost::RecordedSteps> steps;  ///< none where there are layers
};

/// Faults: unknown GPUs and models, layer times of another model, several members without experts,
/// a request longer than the window, a cache that does not hold one request.
[[nodiscard]] CheckedResult<ServerSetup> set_up_server(const ServingBundle& bundle,
                                                       const SetupRequest& request);

}  // namespace bubblesim::validate
