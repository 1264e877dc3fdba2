// What a language-model server is: a model on one GPU, the settings of its scheduler, and the KV
// cache that the GPU's memory leaves it.
#pragma once

#include <cstdint>
#include <variant>

#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/synth/inference_memory.hpp"
#include "sim/synth/inference_request.hpp"

namespace bubblesim::synth {

/// How large the KV cache is.
struct CacheBlocks {
  std::uint32_t blocks = 1;
};
/// A share of the GPU's memory for weights, activations and cache together; the cache has what the
/// first two leave (vLLM's gpu_memory_utilization).
struct MemoryShare {
  double share = 0.9;  ///< (0, 1]
};
using CacheSize = std::variant<CacheBlocks, Bytes, MemoryShare>;

/// Settings before the sizes of blocks are known.
struct EngineSettings {
  serving::SchedulerSpec scheduler;  ///< kv_blocks and host_blocks are found from what follows
  CacheSize cache = MemoryShare{};
  Bytes host_cache;                  ///< for swapping
};

struct ServerPlan {
  InferenceRequest request;  ///< a Generation: how decode steps are launched; lengths are unused
  serving::SchedulerSpec scheduler;
  InstanceMemory memory;     ///< weights, cache, and activations of the largest step
};

/// Faults: a model that is no decoder, memory that the GPU does not have, a cache of no block,
/// serving::check.
[[nodiscard]] Result<ServerPlan> plan_server(const InferenceRequest& request,
                                             const EngineSettings& settings);

}  // namespace bubblesim::synth
