// An inference instance: a model on one GPU, and the shape of its requests. Only an engine's server
// may have several GPUs (server_plan.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/inference_work.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/synth/software_spec.hpp"

namespace bubblesim::synth {

/// A request is one forward pass: encoders, images, recommenders; a decoder that scores a text (no
/// KV cache, logits of every token).
struct OnePass {
  std::uint64_t sequence = 0;  ///< tokens; 0: as many as the model has positions; images: ignored
  model::AttentionKernels attention = model::AttentionKernels::kFlash;
};

/// How the host launches a step that produces tokens.
enum class DecodeMode : std::uint8_t {
  kEager,  ///< a call for each kernel
  kGraph,  ///< one call for all kernels of a model's pass (a CUDA graph); prompts stay eager, but
           ///< for an engine's (serving::StepGraphs)
};

/// A small model drafts, the large one verifies (sim/model/inference_work.hpp).
struct DraftSpeculation {
  model::ModelSpec draft;
  model::TokenTree tree;
  double acceptance = 0;  ///< probability that a drafted token is accepted, 0 to 1
};

/// A request is a prompt and its output tokens, with a KV cache. The prompt's pass yields the first
/// token, every decode step one more.
struct Generation {
  std::uint64_t prompt_tokens = 1;
  std::uint64_t output_tokens = 1;
  DecodeMode decode = DecodeMode::kEager;
  std::optional<DraftSpeculation> speculation;
};

struct InferenceRequest {
  model::ModelSpec model;
  std::uint32_t batch = 1;  ///< requests served together
  std::variant<OnePass, Generation> shape;
  model::Precision precision = model::Precision::kFp16;
  Duration step_host{};  ///< host time of each step besides launches: a server's scheduler
  hardware::GpuSpec gpu;
  model::Efficiency efficiency;
  SoftwareSpec software;  ///< only forward_gap, launch_call and the kernels' slowdown are used
};

/// Bytes on the GPU, including a draft model's.
struct InstanceMemory {
  double weights = 0;
  double kv_cache = 0;     ///< of the whole batch at its longest; no paging waste
  double activations = 0;  ///< most that one layer needs at once: input, output, inner arrays
  [[nodiscard]] double total() const { return weights + kv_cache + activations; }
};

/// Fault: a request beyond the model's limits. Does not check that the memory fits the GPU.
[[nodiscard]] Result<InstanceMemory> instance_memory(const InferenceRequest& request);

/// instance_memory(), with a further fault: it exceeds the GPU's memory (the fault names the
/// largest batch that fits).
[[nodiscard]] Result<InstanceMemory> memory_that_fits(const InferenceRequest& request);

/// Weights in `precision`, each tensor once.
[[nodiscard]] double weight_bytes(const model::ModelWork& work, model::Precision precision);
/// The most that one layer of a pass needs at once.
[[nodiscard]] double pass_bytes(const model::ModelWork& work);

}  // namespace bubblesim::synth
