// The time of an engine's steps: kernels of the batch, exchanges between GPUs, the host.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/serving/step.hpp"

namespace bubblesim::step_cost {

using serving::StepGraphs;

/// The CUDA graphs that an engine has captured.
struct CapturedGraphs {
  /// Tokens of each, ascending; none: no graphs. A step of at most as many as the last runs as the
  /// smallest that holds it.
  std::vector<std::uint32_t> sizes;
  /// A step is one graph if each of its sequences has so many tokens: one, and all drafts that a
  /// round may check (vLLM, `uniform_decode_query_len`).
  std::uint32_t query = 1;
};

/// vLLM's default (0.19, VllmConfig._set_cudagraph_sizes): 1, 2, 4, from 8 on every 8th, from 256
/// on every 16th up to twice the most decoding tokens of a step (one for each sequence, and its
/// drafts), at most 512 and at most a step's limit; with drafts each rounded up to a multiple of
/// `query`, unless that is above the last (adjust_cudagraph_sizes_for_spec_decode).
[[nodiscard]] CapturedGraphs vllm_graphs(const serving::SchedulerSpec& scheduler);

/// The launch of a step of `tokens`. `uniform`: each sequence has `captured.query`.
[[nodiscard]] serving::StepShape shape_of(std::uint32_t tokens, bool uniform,
                                          const CapturedGraphs& captured);
[[nodiscard]] serving::StepShape shape_of(const serving::ScheduledStep& step,
                                          const CapturedGraphs& captured);

/// A chunk of a prompt.
struct PromptChunk {
  std::uint32_t tokens = 0;
  std::uint32_t cached = 0;  ///< earlier tokens of the sequence, in the cache
};

struct Batch {
  serving::StepShape shape;
  std::uint32_t sequences = 0;      ///< rows of the logits, unfinished prompts included
  std::vector<PromptChunk> chunks;  ///< of more than one token
  std::vector<std::uint32_t> decodes;  ///< tokens that a single token attends to, itself included

  /// All sequences have one token.
  [[nodiscard]] bool decodes_only() const { return chunks.empty(); }
};

/// Replaces `batch`; its vectors keep their memory.
void set_batch(const serving::ScheduledStep& step, const serving::StepShape& shape, Batch& batch);

/// An engine's costs besides its kernels. configs/engines/*.json (configs/engines/README.md
/// explains each key): every constant is an object with its value and its source.
struct EngineSpec {
  std::string id;
  Duration first_step{};     ///< added to the first step after the engine has started
  Duration prepare{};        ///< host time before a step that was not scheduled ahead
  Duration output{};         ///< from the end of a step's kernels to its tokens
  double gpu_memory_utilization = 0.9;  ///< share of the GPU's memory for the engine
  Bytes reserved;            ///< part of this share for activations, context and graphs
};

/// Everything but the id; finishes the root.
[[nodiscard]] EngineSpec read_engine(ObjectReader& root);
/// `name` is a path (it has a "/" or ends in ".json"), else the id of a file in `folder`.
[[nodiscard]] CheckedResult<EngineSpec> find_engine(std::string_view name,
                                                    const std::string& folder);

/// The link of every GPU of the server to the others, each direction.
struct ServerLink {
  BytesPerSecond bandwidth;
  Duration latency{};
  model::GpuMesh mesh = model::GpuMesh::kPartial;
};

struct ServerLayout {
  std::uint32_t tensor = 1;  ///< GPUs that share each layer
  std::uint32_t data = 1;    ///< members of a group, each with its own sequences and scheduler
  bool expert_parallel = false;  ///< the group's GPUs share the experts; else each member has all
  ServerLink link;           ///< if there are several GPUs

  /// GPUs among which experts are spread.
  [[nodiscard]] std::uint32_t expert_ranks() const {
    return expert_parallel ? tensor * data : 1;
  }
};

/// Microseconds of exchanges in a step of a member with `tokens` tokens and `sequences` sequences,
/// in a group whose members have `group_tokens` together. Rings, as in NCCL:
///   all-reduce over n: 2 (n-1)/n of the bytes over the link, and 2 (n-1) latencies;
///   all-gather and reduce-scatter: half of it;
/// but by model::server_reduce an all-reduce may have one stage or two, each with one latency.
/// With tensor > 1, activations (2 bytes) are
/// all-reduced after the embedding, after attention and after the feed-forward part of each block,
/// and logits gathered (vLLM's RowParallelLinear, VocabParallelEmbedding, LogitsProcessor). With
/// experts over several GPUs, each mixture gathers the tokens of all, and reduces and scatters the
/// results (vLLM's default all2all_backend, allgather_reducescatter); the tensor ranks of one of
/// several members then gather its tokens.
[[nodiscard]] double exchange_us(const model::TransformerSpec& model, const ServerLayout& layout,
                                 double tokens, double group_tokens, double sequences);

/// Kernel times on one GPU of a server.
class KernelTimes {
 public:
  virtual ~KernelTimes() = default;
  /// Microseconds of a batch's kernels on one GPU, without exchanges and without experts.
  [[nodiscard]] virtual double batch_us(const Batch& batch) = 0;
  /// Microseconds of all mixtures of experts on one GPU in a step in which the members of its group
  /// together have `group_tokens`, unless batch_us() has them. Called only for models with experts.
  [[nodiscard]] virtual double experts_us(double /*group_tokens*/) { return 0; }
  /// Counts the assumptions made so far.
  virtual void add_counters(CounterSet& /*counters*/) const {}
};

/// Steps of a server, or of a group of data-parallel members that step together, since their
/// exchanges make each wait for the slowest.
class EngineCost {
 public:
  /// Everything outlives this.
  EngineCost(KernelTimes& kernels, const model::TransformerSpec& model,
             const ServerLayout& layout, const EngineSpec& engine, CapturedGraphs captured);

  /// The time from the step's start until the schedulers know its tokens. `steps`: one for each
  /// member; null: it runs an idle batch. A `queued` step was scheduled while another ran, which
  /// hides the host's preparation.
  [[nodiscard]] Duration step_time(std::span<const serving::ScheduledStep* const> steps,
                                   bool queued);

 private:
  KernelTimes& kernels_;
  const model::TransformerSpec& model_;
  const ServerLayout& layout_;
  const EngineSpec& engine_;
  CapturedGraphs captured_;
  serving::ScheduledStep idle_;  ///< of a member without work
  std::vector<serving::StepShape> shapes_;  ///< by member; kept, as the batch, for its memory
  Batch batch_;
  bool has_stepped_ = false;
};

}  // namespace bubblesim::step_cost
