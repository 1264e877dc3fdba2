// The work of inference: one forward pass at some batch, and for language models the iterations of
// continuous batching (Orca, OSDI 2022), with a KV cache. Kernel for kernel as vLLM launches them
// for decoders (fused residual and RMS norm, biases within products, one attention kernel for
// prompts and one for single tokens) and PyTorch for encoders and images.
//
// In the returned ModelWork only `forward`, tensors, working and output bytes are filled.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/model/model_spec.hpp"

namespace bubblesim::model {

/// One request in an iteration.
struct SequenceState {
  std::uint64_t new_tokens = 1;  ///< computed now: a chunk of the prompt, or 1 to decode
  std::uint64_t context = 0;     ///< tokens in the KV cache already
};

enum class Logits : std::uint8_t {
  kLastToken,   ///< of each sequence
  kEveryToken,  ///< to verify drafted tokens
};

/// One iteration over a mixed batch: prompts' chunks and single tokens. Decoders only; context
/// parallel and unfused attention do not occur. Sequences beyond the model's learned positions,
/// an empty batch, and a split that does not divide are faults.
[[nodiscard]] Result<ModelWork> iteration_work(const ModelSpec& model, const Split& split,
                                               Precision precision,
                                               const std::vector<SequenceState>& sequences,
                                               Logits logits = Logits::kLastToken);

/// `sequences` prompts of `tokens_each`, `context` tokens of each cached already.
[[nodiscard]] Result<ModelWork> prefill_work(const ModelSpec& model, const Split& split,
                                             Precision precision, std::uint32_t sequences,
                                             std::uint64_t tokens_each, std::uint64_t context = 0);

/// One token for each of `sequences` with `context` tokens cached.
[[nodiscard]] Result<ModelWork> decode_work(const ModelSpec& model, const Split& split,
                                            Precision precision, std::uint32_t sequences,
                                            std::uint64_t context);

/// A request of `batch` samples: images and graphs as they are, encoders over `sequence` tokens
/// (0: as many as the model has positions), decoders the prompt's pass.
[[nodiscard]] Result<ModelWork> request_work(const ModelSpec& model, const Split& split,
                                             Precision precision, std::uint32_t batch,
                                             std::uint64_t sequence = 0);

/// One pass over `batch` samples as a framework runs a module in evaluation mode: kernel for kernel
/// the forward pass of training without dropout and loss. Decoders: no KV cache, logits of every
/// token.
[[nodiscard]] Result<ModelWork> forward_work(const ModelSpec& model, const Split& split,
                                             Precision precision, std::uint32_t batch,
                                             std::uint64_t sequence, AttentionKernels attention);

/// Keys and values of `tokens` in all layers, on one GPU.
[[nodiscard]] Result<double> kv_cache_bytes(const ModelSpec& model, const Split& split,
                                            Precision precision, double tokens);

}  // namespace bubblesim::model
