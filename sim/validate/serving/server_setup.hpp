// A measured server as the simulator runs it: settings that were recorded, and the engine's
// defaults for the others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/serving/step.hpp"
#include "sim/step_cost/engine_cost.hpp"
#include "sim/step_cost/layer_tables.hpp"
#include "sim/step_cost/model_times.hpp"

namespace bubblesim::validate {

/// Settings that are absent were not recorded: the engine's defaults hold.
struct ServerSettings {
  std::string bundle;     ///< the run's folder, which faults name
  std::string model;      ///< as its publisher names it
  std::string gpu_name;   ///< as the driver names it; empty: not recorded
  std::string gpu_label;  ///< "RTX4090"
  std::uint32_t max_num_seqs = 0;
  std::uint32_t max_num_batched_tokens = 0;
  std::optional<std::uint32_t> max_model_len;
  std::optional<std::uint32_t> num_gpu_blocks;
  std::optional<std::uint32_t> block_size;
  std::optional<bool> prefix_caching;
  std::optional<bool> async_scheduling;
  std::optional<bool> reserve_full_prompt;
  std::optional<double> memory_utilization;
  std::optional<bool> chunked_prefill;
  std::optional<std::uint32_t> long_prefill_token_threshold;
  std::optional<step_cost::CaptureSizes> capture_sizes;  ///< empty: it captured no graphs
  step_cost::ServerLayout layout;
};

/// The keys of an object are the names of the members above, and those of the layout.
[[nodiscard]] ServerSettings read_server_settings(ObjectReader& object);

/// A server's requests by arrival, and what the run calls them.
struct MeasuredLoad {
  std::vector<std::string> names;
  std::vector<serving::Request> requests;
};

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
[[nodiscard]] CheckedResult<ServerSetup> set_up_server(const ServerSettings& settings,
                                                       const MeasuredLoad& load,
                                                       const SetupRequest& request);

}  // namespace bubblesim::validate
