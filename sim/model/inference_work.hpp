// The work of inference: one forward pass at some batch, and for language models the iterations of
// continuous batching (Orca, OSDI 2022), with a KV cache. The kernels are those of vLLM for
// decoders (fused residual and RMS norm, biases within products, one attention kernel for prompts
// and one for single tokens) and of PyTorch for encoders and images.
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
  std::uint64_t new_tokens = 1;  ///< computed now: a chunk of the prompt, or 1 in decoding
  std::uint64_t context = 0;     ///< tokens in the KV cache already
};

enum class Logits : std::uint8_t {
  kLastToken,   ///< of each sequence
  kEveryToken,  ///< to verify drafted tokens
};

/// One iteration over a mixed batch: chunks of prompts and single tokens. Decoders only, without
/// context parallelism and unfused attention. Sequences beyond the model's learned positions, an
/// empty batch, and a split that does not divide are faults.
[[nodiscard]] Result<ModelWork> iteration_work(const ModelSpec& model, const Split& split,
                                               Precision precision,
                                               const std::vector<SequenceState>& sequences,
                                               Logits logits = Logits::kLastToken);

/// Sums over the sequences that one attention kernel serves.
struct AttentionSums {
  double sequences = 0;
  double queries = 0;  ///< new tokens
  double keys = 0;     ///< cached and new
  double pairs = 0;    ///< pairs of a query and a key that it sees; new tokens are causal
  double longest = 0;  ///< most new tokens of a sequence

  void add(const SequenceState& sequence);
};

/// A mixed batch by its sums, which determine its kernels.
struct IterationSums {
  AttentionSums prompts;     ///< in the attention kernel of prompts
  AttentionSums singles;     ///< in the attention kernel of decode steps
  std::uint64_t tokens = 0;  ///< in the matrix products, perhaps padded
  std::uint64_t rows = 0;    ///< of logits
  /// Tokens of all data-parallel members whose GPUs share the experts (Split::expert), this one's
  /// included: each GPU gathers all of them, and has whole experts, tensor parallel or not. 0:
  /// experts as in training. Unused if experts are not split.
  std::uint64_t group_tokens = 0;
};

/// The iteration with these sums: the same kernels as iteration_work of its sequences. Fault: no
/// tokens or no rows; otherwise as iteration_work, except for learned positions, which cannot be
/// checked here.
[[nodiscard]] Result<ModelWork> summed_iteration_work(const ModelSpec& model, const Split& split,
                                                      Precision precision,
                                                      const IterationSums& sums);

/// The attention kernels of one block of that iteration, prompts first: its only forward items that
/// depend on contexts. Precondition: summed_iteration_work accepts the sums.
[[nodiscard]] std::vector<KernelWork> attention_work(const ModelSpec& model, const Split& split,
                                                     Precision precision,
                                                     const IterationSums& sums);

/// `sequences` prompts of `tokens_each`, `context` tokens of each cached already.
[[nodiscard]] Result<ModelWork> prefill_work(const ModelSpec& model, const Split& split,
                                             Precision precision, std::uint32_t sequences,
                                             std::uint64_t tokens_each, std::uint64_t context = 0);

/// One token for each of `sequences` with `context` tokens cached.
[[nodiscard]] Result<ModelWork> decode_work(const ModelSpec& model, const Split& split,
                                            Precision precision, std::uint32_t sequences,
                                            std::uint64_t context);

/// One pass over `batch` samples as a framework runs a module in evaluation mode: kernel for kernel
/// the forward pass of training without dropout and loss. Decoders: no KV cache, logits of every
/// token.
[[nodiscard]] Result<ModelWork> forward_work(const ModelSpec& model, const Split& split,
                                             Precision precision, std::uint32_t batch,
                                             std::uint64_t sequence, AttentionKernels attention);

/// Keys and values of `tokens` in all layers, on one GPU.
[[nodiscard]] Result<double> kv_cache_bytes(const ModelSpec& model, const Split& split,
                                            Precision precision, double tokens);

// Speculative decoding with a token tree (SpecInfer, ASPLOS 2024): a small model drafts a tree of
// tokens level by level, the large model checks all of them in one pass with a mask by which each
// token sees only its ancestors.

/// Children of each node, by depth: {1, 1, 3, 1} drafts 1, 1, 3 and 3 tokens. SpecInfer's own
/// setting is {1, 1, 3, 1, 1, 1, 1, 1} (section 6.1).
struct TokenTree {
  std::vector<std::uint32_t> expansion;
};

[[nodiscard]] TokenTree chain(std::uint32_t depth);

/// Drafted tokens: the sum over levels. A tree without levels, with a level of no children or of
/// more than 65,536 tokens is a fault.
[[nodiscard]] Result<std::uint64_t> token_count(const TokenTree& tree);

/// The kernels of one round for `sequences` with `context` tokens cached.
struct SpeculationWork {
  std::vector<ModelWork> draft;  ///< one step for each level: the parents of its nodes go through
                                 ///< the model
  ModelWork verify;              ///< the last known token and the whole tree go through the large
                                 ///< model
};

struct SpeculationShape {
  Split split;        ///< of the large model
  Split draft_split;
  Precision precision = Precision::kFp16;
  std::uint32_t sequences = 1;
  std::uint64_t context = 0;
};

[[nodiscard]] Result<SpeculationWork> speculation_work(const ModelSpec& large,
                                                       const ModelSpec& draft,
                                                       const SpeculationShape& shape,
                                                       const TokenTree& tree);

/// The verifying pass alone.
[[nodiscard]] Result<ModelWork> verify_work(const ModelSpec& large, const Split& split,
                                            Precision precision, std::uint32_t sequences,
                                            std::uint64_t context, const TokenTree& tree);

/// The mean number of tokens of a round, including the large model's own token after the last
/// accepted one: 1 + sum over levels of the chance that a node of that level is accepted. A child
/// is accepted with probability `acceptance_rate`, independently of others; at least one of k
/// children with 1 - (1 - rate)^k. For a chain of depth d that is (1 - rate^(d+1)) / (1 - rate),
/// equation 1 of Leviathan et al. 2023 (Fast inference from transformers via speculative decoding).
/// Independence of siblings is an assumption that favours wide trees.
[[nodiscard]] Result<double> expected_accepted(double acceptance_rate, const TokenTree& tree);

}  // namespace bubblesim::model
