// What a step's time depends on: the shape of the batch that goes through the model.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/serving/scheduler_spec.hpp"
#include "sim/serving/step.hpp"

namespace bubblesim::step_cost {

/// Batch sizes of which an engine has captured CUDA graphs, ascending. A step of no more tokens
/// than the last runs as the smallest graph that holds it.
using CaptureSizes = std::vector<std::uint32_t>;

/// vLLM's default (0.19, VllmConfig._set_cudagraph_sizes): 1, 2, 4, from 8 on every 8th, from 256
/// on every 16th up to twice the most tokens that decode in a step (of each sequence one, and its
/// drafts), at most 512, and no more than a step may have.
[[nodiscard]] CaptureSizes vllm_capture_sizes(const serving::SchedulerSpec& scheduler);

/// Whether a step of `tokens` is as small as a captured graph.
[[nodiscard]] bool fits_graph(std::uint32_t tokens, const CaptureSizes& sizes);

/// Tokens that a step of `tokens` computes, padding to its captured graph included.
[[nodiscard]] std::uint32_t padded_tokens(std::uint32_t tokens, const CaptureSizes& sizes);

/// Part of a prompt.
struct PromptChunk {
  std::uint32_t tokens = 0;
  std::uint32_t cached = 0;  ///< tokens of the sequence that the cache holds already
};

struct Batch {
  std::uint32_t tokens = 0;         ///< through the model
  std::uint32_t padded_tokens = 0;  ///< with those that fill a graph up
  std::uint32_t group_tokens = 0;   ///< padded, of all members of its group; alone: its own
  std::uint32_t sequences = 0;      ///< rows of the logits: of unfinished prompts too
  bool in_graph = false;            ///< all kernels are one CUDA graph
  std::vector<PromptChunk> chunks;  ///< of more than one token
  std::vector<std::uint32_t> decodes;  ///< tokens that a single token attends to, itself included

  /// All sequences have one token: attention is part of the graph.
  [[nodiscard]] bool decodes_only() const { return chunks.empty(); }
};

/// Replaces `batch`; its vectors keep their memory.
void set_batch(const serving::ScheduledStep& step, const CaptureSizes& sizes, Batch& batch);

/// A batch that computes nothing useful: an idle member of a data-parallel group runs it.
[[nodiscard]] Batch idle_batch();

}  // namespace bubblesim::step_cost
