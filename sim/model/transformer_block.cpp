// A block: norm, attention, residual, norm, feed-forward part, residual; or the norms last (BERT).
#include <algorithm>

#include "sim/model/transformer_work.hpp"

namespace bubblesim::model {
namespace {


std::string residual_name(const TransformerShape& shape) {
  if (shape.dropout) return shape.spec->biases ? "bias dropout add" : "dropout add";
  return shape.spec->biases ? "bias add" : "residual add";
}

// Adds bias, dropout and residual in one kernel: reads the output and the residual, writes the sum.
KernelWork residual_forward(const TransformerShape& shape) {
  const double mask = shape.dropout ? kMaskByte : 0.0;
  return stream_kernel(residual_name(shape), KernelKind::kElementwise, shape.split_stream(),
                       3.0 * shape.element + mask, stored(shape.run.precision), 4.0);
}

// Dropout's mask is applied again; the residual's gradient is the same array. Without dropout
// there is nothing to launch.
void residual_backward(const TransformerShape& shape, const std::string& part,
                       LayerBuilder& out) {
  if (shape.dropout) {
    out.input_grad(stream_kernel(part + " dropout input-grad", KernelKind::kElementwise,
                                 shape.split_stream(), 2.0 * shape.element + kMaskByte,
                                 stored(shape.run.precision), 2.0));
  }
  bias_backward(shape, part, shape.split_stream(), out);
}

// Where the residual branched off, two gradients meet.
void fork_backward(const TransformerShape& shape, LayerBuilder& out) {
  out.input_grad(stream_kernel("residual gradient add", KernelKind::kElementwise,
                               shape.split_stream(), 3.0 * shape.element,
                               stored(shape.run.precision)));
}

void part_forward(const TransformerShape& shape, FeedForward part, std::vector<WorkItem>& items) {
  if (part == FeedForward::kExperts) return experts_forward(shape, items);
  dense_forward(shape, shape.ffn, items);
}

void forward(const TransformerShape& shape, FeedForward part, std::vector<WorkItem>& items) {
  const bool before = shape.spec->norm_place == NormPlace::kBefore;
  if (before) items.push_back(norm_forward(shape));
  attention_forward(shape, items);
  items.push_back(residual_forward(shape));
  items.push_back(norm_forward(shape));
  part_forward(shape, part, items);
  items.push_back(residual_forward(shape));
  if (!before) items.push_back(norm_forward(shape));
}

void backward(const TransformerShape& shape, FeedForward part, LayerBuilder& out) {
  const bool before = shape.spec->norm_place == NormPlace::kBefore;
  if (!before) norm_backward(shape, out);
  residual_backward(shape, "down", out);
  if (part == FeedForward::kExperts) {
    experts_backward(shape, out);
  } else {
    dense_backward(shape, shape.ffn, out);
  }
  if (before) {
    norm_backward(shape, out);
    fork_backward(shape, out);
  } else {
    fork_backward(shape, out);
    norm_backward(shape, out);
  }
  residual_backward(shape, "attention output", out);
  attention_backward(shape, out);
  if (before) norm_backward(shape, out);
  fork_backward(shape, out);
}

void linear_parameters(const TransformerShape& shape, double weights, double bias,
                       LayerBuilder& out) {
  out.parameters(weights);
  if (shape.spec->biases) out.parameters(bias);
}

void parameters(const TransformerShape& shape, FeedForward part, LayerBuilder& out) {
  const auto h = static_cast<double>(shape.hidden());
  const auto queries = static_cast<double>(shape.query_columns);
  const double qkv = queries + 2.0 * static_cast<double>(shape.kv_columns);
  norm_parameters(shape, out);
  linear_parameters(shape, h * qkv, qkv, out);
  linear_parameters(shape, queries * h, h, out);
  if (shape.spec->biases && shape.splits_sequence()) out.split_by_tokens();
  norm_parameters(shape, out);
  if (part == FeedForward::kExperts) return experts_parameters(shape, out);
  const auto inner = static_cast<double>(shape.ffn);
  const auto up = static_cast<double>(up_columns(shape, shape.ffn));
  linear_parameters(shape, h * up, up, out);
  linear_parameters(shape, inner * h, h, out);
  if (shape.spec->biases && shape.splits_sequence()) out.split_by_tokens();
}

// Korthikanti et al. 2022, section 4.1: inputs of norms and of linear layers, dropout masks,
// queries, keys and values, the activation's input and output. Without the attention core.
double kept_outside_core(const TransformerShape& shape, FeedForward part) {
  const double p = shape.element;
  const double mask = shape.dropout ? kMaskByte : 0.0;
  const auto tokens = static_cast<double>(shape.tokens);
  const double qkv = static_cast<double>(2 * shape.query_columns + 2 * shape.kv_columns);
  double kept = shape.split_stream() * (4.0 * p + 2.0 * mask) + tokens * qkv * p;
  if (part == FeedForward::kExperts) return kept + experts_kept(shape);
  const double inner = static_cast<double>(shape.ffn + up_columns(shape, shape.ffn));
  return kept + tokens * inner * p;
}

// Inputs and output gradients of the products.
double held_for_weights(const TransformerShape& shape, FeedForward part) {
  const double p = shape.element;
  const auto tokens = static_cast<double>(shape.tokens);
  const auto queries = static_cast<double>(shape.query_columns);
  const double qkv = queries + 2.0 * static_cast<double>(shape.kv_columns);
  const double attention = 2.0 * shape.split_stream() + tokens * (queries + qkv);
  if (part == FeedForward::kExperts) return p * attention + experts_held(shape);
  const auto inner = static_cast<double>(shape.ffn + up_columns(shape, shape.ffn));
  return p * (attention + 2.0 * shape.split_stream() + tokens * inner);
}

// Gradients alive at once within the layer: of its output and of the widest array in it.
double gradients_alive(const TransformerShape& shape) {
  const auto tokens = static_cast<double>(shape.tokens);
  double widest = tokens * static_cast<double>(up_columns(shape, shape.ffn));
  widest = std::max(widest, tokens * static_cast<double>(shape.query_columns +
                                                         2 * shape.kv_columns));
  if (shape.run.attention == AttentionKernels::kUnfused) widest = std::max(widest, shape.scores());
  return shape.element * (shape.stream() + 2.0 * widest);
}

void memory(const TransformerShape& shape, FeedForward part, LayerWork& layer) {
  const double core = attention_core_kept(shape);
  const double outside = kept_outside_core(shape, part);
  const bool unfused = shape.run.attention == AttentionKernels::kUnfused;
  layer.output_bytes = shape.split_stream() * shape.element;
  layer.working_bytes = gradients_alive(shape);
  layer.weight_grad_bytes = held_for_weights(shape, part);
  layer.activation_bytes = outside + core;
  if (shape.run.recompute == Recompute::kFull) {
    layer.activation_bytes = layer.output_bytes;  // the layer's input, as large as its output
    layer.working_bytes += outside + core - layer.output_bytes;
  } else if (shape.run.recompute == Recompute::kSelective && unfused) {
    layer.activation_bytes = outside;
    layer.working_bytes += core;
  }
}

// Megatron-LM's checkpoint runs the layer's whole forward again, its last exchange too
// (tensor_parallel/random.py, CheckpointFunction.backward). Fused attention computes its scores
// again by itself, so selective recomputation adds nothing to it.
void recompute(const TransformerShape& shape, LayerWork& layer) {
  const bool unfused = shape.run.attention == AttentionKernels::kUnfused;
  if (shape.run.recompute == Recompute::kFull) {
    layer.recompute = layer.forward;
  } else if (shape.run.recompute == Recompute::kSelective && unfused) {
    attention_core_forward(shape, layer.recompute);
  }
}

}  // namespace

LayerWork block_layer(const TransformerShape& shape, FeedForward part) {
  LayerBuilder out(part == FeedForward::kExperts ? "expert block" : "block");
  forward(shape, part, out.layer().forward);
  parameters(shape, part, out);
  if (shape.pass == Pass::kTraining) {
    backward(shape, part, out);
    recompute(shape, out.layer());
    memory(shape, part, out.layer());
  } else {
    out.layer().output_bytes = shape.split_stream() * shape.element;
    out.layer().working_bytes = gradients_alive(shape);
  }
  return out.take();
}

}  // namespace bubblesim::model
