// What a language-model server is: a model on one GPU or split over several, the settings of its
// schedulers, and the KV cache that each GPU's memory leaves it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>

#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/serving/step.hpp"
#include "sim/synth/inference_request.hpp"
#include "sim/workload/step_program.hpp"

namespace bubblesim::synth {

class StepKernels {
 public:
  virtual ~StepKernels() = default;
  /// On one of the server's GPUs, from the start of the first kernel to the end of the last one,
  /// without exchanges and without a draft model's passes; > 0.
  [[nodiscard]] virtual Duration kernel_time(const serving::ScheduledStep& step,
                                             workload::StepTokens tokens) = 0;
};

/// One for each program: it may keep what it was asked. Null: the kernel model says it.
using StepKernelsMaker = std::function<std::unique_ptr<StepKernels>()>;

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

/// How a prompt's keys and values are written to another GPU.
enum class KvWrites : std::uint8_t {
  kContiguous,  ///< at once (P/D-Serve, arXiv 2408.08147)
  kBlocks,      ///< each block's keys, and its values, of each layer
};

/// Prefill and decode apart: of a filler's GPUs the first compute prompts, the others decode.
struct PrefillSplit {
  std::uint32_t gpus = 1;     ///< that compute prompts
  BytesPerSecond link;        ///< of each of them, its own; 0: the cluster's links, training's too
  Duration write{};           ///< what a write costs besides its bytes
  KvWrites writes = KvWrites::kContiguous;
};

/// Settings before the sizes of blocks are known.
struct EngineSettings {
  serving::SchedulerSpec scheduler;  ///< kv_blocks and host_blocks are found from what follows
  CacheSize cache = MemoryShare{};
  Bytes host_cache;                  ///< for swapping
  std::optional<PrefillSplit> prefill;  ///< nothing: each GPU serves requests to their end
  std::uint32_t tensor = 1;  ///< GPUs that share each layer (tensor_parallel_size)
  /// Members of a server that have sequences and a scheduler of their own, each on `tensor` GPUs
  /// (data_parallel_size). Several share the experts of a mixture (enable_expert_parallel).
  std::uint32_t members = 1;
};

struct ServerPlan {
  /// A Generation: how decode steps are launched, and which model drafts, if one does. The rest of
  /// it is unused.
  InferenceRequest request;
  serving::SchedulerSpec scheduler;
  /// What a GPU holds: weights, cache, and activations of the largest step; a draft model's too.
  InstanceMemory memory;
  double block_bytes = 0;    ///< of a block of the cache, on each GPU
  std::uint32_t layers = 1;  ///< that have keys and values
  std::optional<PrefillSplit> prefill;
  model::Split split{};      ///< over the server's GPUs: tensor parallel; its experts over all
  std::uint32_t members = 1;
  StepKernelsMaker kernels{};  ///< what a step's kernels take together; null: the model's sum

  /// GPUs of a server.
  [[nodiscard]] std::uint32_t gpus() const { return split.tensor * members; }
  [[nodiscard]] bool shares_experts() const { return split.expert > 1; }
  /// A draft model's experts are on each GPU.
  [[nodiscard]] model::Split draft_split() const {
    model::Split draft = split;
    draft.expert = 1;
    return draft;
  }
};

/// The handover from a GPU that computed a prompt to one that decodes: the bytes of its blocks, and
/// PrefillSplit::write for each write. Precondition: the plan has `prefill`.
[[nodiscard]] Bytes handover_bytes(const ServerPlan& plan, std::uint32_t prompt_tokens);
[[nodiscard]] Duration handover_writes(const ServerPlan& plan, std::uint32_t prompt_tokens);
/// Both over a link of its own, rounded to the nearest nanosecond. Precondition: it has one.
[[nodiscard]] Duration handover_time(const ServerPlan& plan, std::uint32_t prompt_tokens);

/// Faults: a model that is no decoder or cannot be split so, several members of a model without
/// experts, memory that a GPU does not have, a cache of no block, serving::check.
[[nodiscard]] Result<ServerPlan> plan_server(const InferenceRequest& request,
                                             const EngineSettings& settings);

}  // namespace bubblesim::synth
