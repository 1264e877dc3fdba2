// Runs the requests of a measured run on its simulated server and returns each request's course as
// JSON, which the module `bubblesim` passes to the judge (notebooks/lab/serving.py).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/serving/scheduler.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/serving/step.hpp"
#include "sim/step_cost/engine_cost.hpp"
#include "sim/step_cost/layer_tables.hpp"
#include "sim/step_cost/model_times.hpp"

namespace bubblesim::validate {

// A measured server as simulated: recorded settings, and the engine's defaults for others.

/// Absent settings were not recorded: the engine's defaults hold.
struct ServerSettings {
  std::string bundle;     ///< the run's folder, which faults name
  std::string model;      ///< name by its publisher
  std::string gpu_name;   ///< name by the driver; empty: not recorded
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
  std::optional<std::vector<std::uint32_t>> capture_sizes;  ///< empty: it captured no graphs
  step_cost::ServerLayout layout;
};

/// The object's keys are the names of the members above, and the names of the layout's members.
[[nodiscard]] ServerSettings read_server_settings(ObjectReader& object);

/// A server's requests by arrival, and the run's names for them.
struct MeasuredLoad {
  std::vector<std::string> names;
  std::vector<serving::Request> requests;
};

struct ServerSetup {
  hardware::GpuSpec gpu;
  model::ModelSpec model;  ///< a transformer
  step_cost::EngineSpec engine;
  serving::SchedulerSpec scheduler;
  step_cost::CapturedGraphs captured;
  std::optional<step_cost::LayerTables> layers;  ///< nothing: the kernel model
  std::optional<step_cost::RecordedSteps> steps;  ///< corrections of the kernel model
  std::optional<model::Efficiency> efficiency;   ///< of the kernel model
  bool blocks_computed = false;  ///< the size of the KV cache was not recorded

  [[nodiscard]] const model::TransformerSpec& transformer() const;
};

struct SetupRequest {
  std::string configs;              ///< folder with devices/, models/, engines/, efficiency/
  std::string engine = "vllm-0.19"; ///< a file of configs/engines
  std::optional<step_cost::LayerTables> layers;
  std::optional<step_cost::RecordedSteps> steps;  ///< nothing if `layers` is given
};

/// Faults: unknown GPUs and models, layer times of another model, several members without experts,
/// a request longer than the window, a cache that does not hold one request.
[[nodiscard]] CheckedResult<ServerSetup> set_up_server(const ServerSettings& settings,
                                                       const MeasuredLoad& load,
                                                       const SetupRequest& request);

/// The files of the server's step times, besides the kernel model; paths, or empty.
struct ServeSources {
  std::string configs;
  std::string engine;  ///< a file of configs/engines
  std::string layers;
  std::string steps;   ///< empty if `layers` is given
};

/// `settings`: an object of server settings. Instants of the answer are nanoseconds since the first
/// arrival, of the requests in the order given; "queued_ns" is when the engine's loop took the
/// request.
[[nodiscard]] CheckedResult<Json> serve_measured(std::string_view settings,
                                                 const MeasuredLoad& load,
                                                 const ServeSources& sources);

// A server with its GPUs to itself, of one member or of several that divide the requests and step
// together (data-parallel attention with experts spread over the members).

/// The course of a request on the simulated server.
struct SimulatedRequest {
  SimTime queued{};  ///< when the engine's loop took it: at the end of the step that ran at its
                     ///< arrival
  serving::FinishedRequest finished;
};

struct ServedLoad {
  std::vector<SimulatedRequest> requests;  ///< in the order of the requests given
  SimTime end{};
  std::uint64_t steps = 0;  ///< of the group
  std::uint64_t preemptions = 0;        ///< sums over the members
  std::uint64_t prefix_hit_tokens = 0;
};

/// Serves `requests`, which are ordered by arrival and numbered from 0 on; each is admissible.
/// Among several members, a request goes to the member with the least 4 x waiting + running, the
/// first of equals (vLLM's DPLBAsyncMPClient). A step of the group lasts as long as its slowest
/// member's.
[[nodiscard]] ServedLoad serve_group(const serving::SchedulerSpec& spec, std::uint32_t members,
                                     std::span<const serving::Request> requests,
                                     step_cost::EngineCost& cost);

}  // namespace bubblesim::validate
