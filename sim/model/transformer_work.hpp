// The inside of training_work.hpp: the kernels of a transformer's layers as Megatron-LM launches
// them (megatron/core/transformer, megatron/core/tensor_parallel; fused kernels of apex), and what
// is kept for the backward pass as Korthikanti et al. 2022 (section 4) count it.
#pragma once

#include "sim/model/transformer_shape.hpp"
#include "sim/model/work_items.hpp"

namespace bubblesim::model {

/// Token, position and segment embeddings; backward: their gradients.
[[nodiscard]] LayerWork embedding_layer(const TransformerShape& shape);

enum class FeedForward : std::uint8_t { kDense, kExperts };

/// Attention and feed-forward part with their norms and residuals.
[[nodiscard]] LayerWork block_layer(const TransformerShape& shape, FeedForward part);

/// Last norm, logits, loss; or pooler and classifier.
[[nodiscard]] LayerWork head_layer(const TransformerShape& shape);

// --- parts, each in a file of its own ---

/// Scores to weighted values: the part that selective recomputation does again.
void attention_core_forward(const TransformerShape& shape, std::vector<WorkItem>& items);
void attention_core_backward(const TransformerShape& shape, LayerBuilder& out);
/// Bytes that the core keeps besides queries, keys, values and its output.
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

/// Columns of the first product of a feed-forward part: two matrices side by side where gated.
[[nodiscard]] std::uint64_t up_columns(const TransformerShape& shape, std::uint64_t inner);
[[nodiscard]] KernelWork activation_forward(const TransformerShape& shape, double elements);
[[nodiscard]] KernelWork activation_backward(const TransformerShape& shape, double elements);

// Norms over the tokens that this GPU norms.
[[nodiscard]] KernelWork norm_forward(const TransformerShape& shape);
void norm_backward(const TransformerShape& shape, LayerBuilder& out);
void norm_parameters(const TransformerShape& shape, LayerBuilder& out);

/// The exchanges before the part that is split by columns (gathers the tokens with sequence
/// parallel), and after the part that is split by rows.
void gather_tokens(const TransformerShape& shape, std::vector<WorkItem>& items);
void reduce_tokens(const TransformerShape& shape, std::vector<WorkItem>& items);

/// Backward of `tokens` x `inputs` times `inputs` x `outputs`. Columns: the input is shared by the
/// tensor ranks, so its gradient is reduced. Rows: the output's gradient is gathered.
enum class LinearSplit : std::uint8_t { kColumns, kRows, kNone };
struct LinearSizes {
  std::uint64_t tokens = 0;
  std::uint64_t inputs = 0;
  std::uint64_t outputs = 0;
};
void linear_backward(const TransformerShape& shape, const std::string& name, LinearSizes sizes,
                     LinearSplit split, LayerBuilder& out);
/// Sum of an output's gradient over tokens; nothing without biases.
void bias_backward(const TransformerShape& shape, const std::string& name, double elements,
                   LayerBuilder& out);

}  // namespace bubblesim::model
