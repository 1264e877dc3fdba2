// Helpers of the work functions: a transformer's layers, with the kernels that Megatron-LM launches
// (megatron/core/transformer, megatron/core/tensor_parallel; fused kernels of apex) and the memory
// kept for the backward pass, counted as by Korthikanti et al. 2022 (section 4); and the layers of
// other networks, one function for each family.
#pragma once

#include <cstdint>

#include "sim/base/result.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/model/model_spec.hpp"

namespace bubblesim::model {

// Helpers of the work functions: sizes of a transformer's block on one GPU under a split, and the
// faults of splits that do not divide it.

enum class Pass : std::uint8_t {
  kTraining,
  kRequest,  ///< forward only, without dropout and loss
};

/// Sizes of one GPU. The spec must outlive it.
struct TransformerShape {
  const TransformerSpec* spec = nullptr;
  Split split;
  TrainingShape run;
  Pass pass = Pass::kTraining;
  double element = 2.0;              ///< bytes of an activation
  std::uint64_t batch = 1;           ///< samples
  std::uint64_t sequence = 0;        ///< tokens of a sample on this GPU: split by context
  std::uint64_t tokens = 0;          ///< batch x sequence
  std::uint64_t split_tokens = 0;    ///< in norms and dropouts: fewer with sequence parallel
  std::uint64_t gathered_tokens = 0; ///< IterationSums::group_tokens
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t query_columns = 0;   ///< heads x head size
  std::uint64_t kv_columns = 0;      ///< of keys; of values, too
  std::uint64_t ffn = 0;             ///< inner width on this GPU; of one expert, if there are
                                     ///< experts
  std::uint64_t vocabulary = 0;      ///< rows on this GPU, padded
  bool dropout = false;

  /// Megatron-LM's fused kernel takes 16-bit scores, in fours (fused_softmax.py,
  /// is_kernel_available; its eights of at most 128 tokens are left out).
  [[nodiscard]] bool fuses_softmax() const;
  /// Bytes of a score in kernels that are not fused: they work in FP32.
  [[nodiscard]] double score_element() const;
  [[nodiscard]] bool splits_tensor() const { return split.tensor > 1; }
  [[nodiscard]] bool splits_sequence() const { return splits_tensor() && split.sequence_parallel; }
  [[nodiscard]] std::uint64_t hidden() const { return spec->hidden; }
  /// tokens x hidden, and the part of it in norms and dropouts.
  [[nodiscard]] double stream() const;
  [[nodiscard]] double split_stream() const;
  /// gathered_tokens x hidden; 0: not gathered.
  [[nodiscard]] double gathered_stream() const;
  /// Elements of unfused attention scores.
  [[nodiscard]] double scores() const;
};

/// Rows of the embedding when split: a multiple of 128 x tensor, as Megatron-LM pads
/// (--make-vocab-size-divisible-by 128); as published when not split.
[[nodiscard]] std::uint64_t padded_vocabulary(std::uint64_t rows, std::uint32_t tensor);

/// A split that does not divide heads, inner width, experts or tokens is a fault that names the
/// nearest that does. Unfused attention with context parallel is a fault, too: context parallel
/// passes chunks of keys and values around a ring to a fused kernel.
[[nodiscard]] Result<TransformerShape> transformer_shape(const TransformerSpec& spec,
                                                         const Split& split,
                                                         const TrainingShape& run, Pass pass);

/// Only the checks that do not depend on tokens: heads, widths, experts.
[[nodiscard]] Result<Split> check_split(const TransformerSpec& spec, const Split& split);

/// Token, position and segment embeddings; backward: their gradients.
[[nodiscard]] LayerWork embedding_layer(const TransformerShape& shape);

enum class FeedForward : std::uint8_t { kDense, kExperts };

/// Attention and feed-forward part with their norms and residuals.
[[nodiscard]] LayerWork block_layer(const TransformerShape& shape, FeedForward part);

/// Last norm, logits, loss; or pooler and classifier.
[[nodiscard]] LayerWork head_layer(const TransformerShape& shape);

// --- parts, each in a file of its own ---

/// Scores to weighted values: the part that selective recomputation repeats.
void attention_core_forward(const TransformerShape& shape, std::vector<WorkItem>& items);
void attention_core_backward(const TransformerShape& shape, LayerBuilder& out);
/// Bytes that the core keeps in addition to queries, keys, values and its output.
[[nodiscard]] double attention_core_kept(const TransformerShape& shape);

void attention_forward(const TransformerShape& shape, std::vector<WorkItem>& items);
void attention_backward(const TransformerShape& shape, LayerBuilder& out);

/// `inner`: width on this GPU.
void dense_forward(const TransformerShape& shape, std::uint64_t inner,
                   std::vector<WorkItem>& items);
void dense_backward(const TransformerShape& shape, std::uint64_t inner, LayerBuilder& out);

void experts_forward(const TransformerShape& shape, std::vector<WorkItem>& items);
void experts_backward(const TransformerShape& shape, LayerBuilder& out);
void experts_parameters(const TransformerShape& shape, LayerBuilder& out);
[[nodiscard]] double experts_kept(const TransformerShape& shape);
/// Bytes that experts hold from input gradients to weight gradients.
[[nodiscard]] double experts_held(const TransformerShape& shape);

/// Columns of the first product of a feed-forward part: two matrices side by side if gated.
[[nodiscard]] std::uint64_t up_columns(const TransformerShape& shape, std::uint64_t inner);
[[nodiscard]] KernelWork activation_forward(const TransformerShape& shape, double elements);
[[nodiscard]] KernelWork activation_backward(const TransformerShape& shape, double elements);

// Norms over this GPU's part of the tokens.
[[nodiscard]] KernelWork norm_forward(const TransformerShape& shape);
void norm_backward(const TransformerShape& shape, LayerBuilder& out);
void norm_parameters(const TransformerShape& shape, LayerBuilder& out);

/// The exchanges before the part that is split by columns (gathers the tokens with sequence
/// parallel), and after the part that is split by rows.
void gather_tokens(const TransformerShape& shape, std::vector<WorkItem>& items);
void reduce_tokens(const TransformerShape& shape, std::vector<WorkItem>& items);

/// Backward of `tokens` x `inputs` times `inputs` x `outputs`. kColumns: the tensor ranks share the
/// input, so its gradient is reduced. kRows: the output's gradient is gathered.
enum class LinearSplit : std::uint8_t { kColumns, kRows, kNone };
struct LinearSizes {
  std::uint64_t tokens = 0;
  std::uint64_t inputs = 0;
  std::uint64_t outputs = 0;
};
void linear_backward(const TransformerShape& shape, const std::string& name, LinearSizes sizes,
                     LinearSplit split, LayerBuilder& out);
/// Sums an output's gradient over tokens; no kernel without biases.
void bias_backward(const TransformerShape& shape, const std::string& name, double elements,
                   LayerBuilder& out);

[[nodiscard]] Result<ModelWork> network_work(const ModelSpec& model, const Split& split,
                                             const TrainingShape& shape, Pass pass);

[[nodiscard]] Result<ModelWork> transformer_work(const TransformerSpec& spec, const Split& split,
                                                 const TrainingShape& shape, Pass pass);
[[nodiscard]] Result<ModelWork> convolutional_work(const ConvolutionalSpec& spec,
                                                   const TrainingShape& shape, Pass pass);
[[nodiscard]] Result<ModelWork> graph_work(const GraphSpec& spec, const TrainingShape& shape,
                                           Pass pass);

}  // namespace bubblesim::model
