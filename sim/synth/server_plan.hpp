// A language-model server: a model on one GPU or split over several, the settings of its
// schedulers, and the KV cache that fits each GPU's memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/serving/step.hpp"
#include "sim/synth/inference_request.hpp"
#include "sim/workload/arrivals/request_lengths.hpp"

namespace bubblesim::synth {

/// The time of all kernels of an engine's step, from measurements instead of the kernel model: a
/// profiler's tables of layer times, or recorded steps.
class StepKernels {
 public:
  virtual ~StepKernels() = default;
  /// On one of the server's GPUs, from the start of the first kernel to the end of the last one,
  /// without exchanges and without a draft model's passes; > 0.
  [[nodiscard]] virtual Duration kernel_time(const serving::ScheduledStep& step,
                                             const serving::StepShape& shape) = 0;
};

/// Makes an object for each program, since it may keep state. Null: the kernel model is used.
using StepKernelsMaker = std::function<std::unique_ptr<StepKernels>()>;

/// The size of the KV cache.
struct CacheBlocks {
  std::uint32_t blocks = 1;
};
/// A share of the GPU's memory for weights, activations and cache together; the cache gets what the
/// first two leave (vLLM's gpu_memory_utilization).
struct MemoryShare {
  double share = 0.9;  ///< (0, 1]
};
using CacheSize = std::variant<CacheBlocks, Bytes, MemoryShare>;

/// The writes of a prompt's keys and values to another GPU.
enum class KvWrites : std::uint8_t {
  kContiguous,  ///< one write for all (P/D-Serve, arXiv 2408.08147)
  kBlocks,      ///< one for each block's keys, and one for its values, in each layer
};

/// Prefill and decode on different GPUs: a filler's first GPUs compute prompts, the others decode.
struct PrefillSplit {
  std::uint32_t gpus = 1;     ///< GPUs that compute prompts
  BytesPerSecond link;        ///< of each of them; 0: they use the cluster's links, as training
                              ///< does
  Duration write{};           ///< fixed time of a write
  KvWrites writes = KvWrites::kContiguous;
};

/// Settings before the sizes of blocks are known.
struct EngineSettings {
  serving::SchedulerSpec scheduler;  ///< kv_blocks and host_blocks follow from the members below
  CacheSize cache = MemoryShare{};
  Bytes host_cache;                  ///< for swapping
  std::optional<PrefillSplit> prefill;  ///< nothing: each GPU serves requests to their end
  std::uint32_t tensor = 1;  ///< GPUs that share each layer (tensor_parallel_size)
  /// Members of a server, each with its own sequences and scheduler, on `tensor` GPUs
  /// (data_parallel_size). Several members share the experts of a mixture (enable_expert_parallel).
  std::uint32_t members = 1;
};

struct ServerPlan {
  /// A Generation, of which only the way of launching decode steps and the draft model are used.
  InferenceRequest request;
  serving::SchedulerSpec scheduler;
  /// Memory on a GPU: weights, cache, and activations of the largest step; a draft model's, too.
  InstanceMemory memory;
  double block_bytes = 0;    ///< of a block of the cache, on each GPU
  std::uint32_t layers = 1;  ///< layers with keys and values
  std::optional<PrefillSplit> prefill;
  model::Split split{};      ///< over the server's GPUs: layers tensor parallel; experts over all
                             ///< GPUs
  std::uint32_t members = 1;
  StepKernelsMaker kernels{};  ///< times of a step's kernels; null: by the model

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

/// The handover from a GPU that computed a prompt to a GPU that decodes: the bytes of its blocks,
/// and PrefillSplit::write for each write. Precondition: the plan has `prefill`.
[[nodiscard]] Bytes handover_bytes(const ServerPlan& plan, std::uint32_t prompt_tokens);
[[nodiscard]] Duration handover_writes(const ServerPlan& plan, std::uint32_t prompt_tokens);
/// The handover's time over a link of its own, rounded to the nearest nanosecond. Precondition: the
/// plan has such a link.
[[nodiscard]] Duration handover_time(const ServerPlan& plan, std::uint32_t prompt_tokens);

/// Faults: a model that is not a decoder or cannot be split like this, several members of a model
/// without experts, too little memory on a GPU, a cache without a block, serving::check.
[[nodiscard]] Result<ServerPlan> plan_server(const InferenceRequest& request,
                                             const EngineSettings& settings);

// Reads all parts of an inference service from the files of configs that it names.

/// The requests that are served together.
enum class BatchingMode : std::uint8_t {
  kStatic,      ///< a batch of requests from its first to its last token
  kContinuous,  ///< an engine with Orca's rules: requests join and leave between steps
};

struct SpeculationNames {
  std::string draft;  ///< a model
  model::TokenTree tree;
  double acceptance = 0;
};

/// The requests of an engine's server, by their sources.
struct RequestNames {
  /// A file of prompts and outputs other than that of arrivals.
  struct File {
    std::string path;
    workload::ArrivalFormat format = workload::ArrivalFormat::kAzure;
    workload::ListedLengths::Pick pick = workload::ListedLengths::Pick::kInOrder;
  };
  /// Nothing: from the file of arrivals.
  std::optional<std::variant<workload::DrawnLengths, File>> lengths;
};

/// A server with the scheduler of a language-model engine (server_plan.hpp).
struct EngineNames {
  EngineSettings settings;
  RequestNames requests;
  std::optional<std::string> accepted_file;  ///< serving::Speculation::recorded
  std::optional<std::string> layers;         ///< a file of layer times: ServerPlan::kernels
  std::optional<std::string> steps;          ///< a file of recorded steps, instead of `layers`
};

/// Each name is a path (it has a "/" or ends in ".json"), else the id of a file of its folder.
struct InferenceNames {
  std::string model;
  std::uint32_t batch = 1;
  std::uint64_t sequence = 0;                  ///< of one pass: as OnePass
  model::AttentionKernels attention = model::AttentionKernels::kFlash;  ///< of one pass
  std::optional<std::uint64_t> prompt_tokens;  ///< of generation; nothing: one pass
  std::uint64_t output_tokens = 1;             ///< of generation
  DecodeMode decode = DecodeMode::kEager;      ///< of generation
  std::optional<SpeculationNames> speculation; ///< of generation; with an engine, only the draft
  BatchingMode batching = BatchingMode::kStatic;  ///< of generation
  /// Uses only `decode` of the generation's fields.
  std::optional<EngineNames> engine;
  model::Precision precision = model::Precision::kFp16;
  Duration step_host{};
  std::string software = "pytorch";
  std::optional<std::string> efficiency;       ///< nothing: the device's
};

/// A tree of `depth` levels with `width` children a node in the third (the last of fewer), else
/// one: the trees <1,1,k,1,1,1,1,1> of SpecInfer (ASPLOS 2024, sections 6.1 and 6.4). Both at least
/// 1.
[[nodiscard]] model::TokenTree tree_of(std::uint32_t depth, std::uint32_t width);

/// `configs` holds models/, devices/, efficiency/ and software/. If no efficiency is named, the
/// file with the name of `gpu`'s file is used. All missing names are reported at once.
[[nodiscard]] CheckedResult<InferenceRequest> find_inference(const InferenceNames& names,
                                                             const hardware::GpuSpec& gpu,
                                                             const std::string& configs);

}  // namespace bubblesim::synth
