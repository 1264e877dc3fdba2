// Layers of a transformer: the block, and what stands before the first and after the last.
#include <algorithm>

#include "sim/model/transformer_work.hpp"

namespace bubblesim::model {
namespace {

// A block: norm, attention, residual, norm, feed-forward part, residual; or the norms last (BERT).


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
  if (shape.run.attention == AttentionKernels::kUnfused) {
    widest = std::max(widest, shape.scores() * shape.score_element() / shape.element);
  }
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

namespace {

// What stands before the first block and after the last: embeddings; logits and loss.
//
// With tensor ranks each holds a part of the vocabulary (Megatron-LM, tensor_parallel/layers.py
// VocabParallelEmbedding, tensor_parallel/cross_entropy.py).


struct Ends {
  const TransformerShape& shape;
  Precision precision;
  double p;

  explicit Ends(const TransformerShape& at)
      : shape(at), precision(stored(at.run.precision)), p(at.element) {}

  [[nodiscard]] KernelWork rows(std::string name, KernelKind kind, double bytes_each) const {
    return stream_kernel(std::move(name), kind, shape.split_stream(), bytes_each, precision);
  }
  [[nodiscard]] KernelWork whole_rows(std::string name, KernelKind kind,
                                      double bytes_each) const {
    return stream_kernel(std::move(name), kind, shape.stream(), bytes_each, precision);
  }
  // A pass over this GPU's part of the logits, in FP32.
  [[nodiscard]] KernelWork logits(std::string name, double bytes_each, double flops_each) const {
    const double count =
        static_cast<double>(shape.tokens) * static_cast<double>(shape.vocabulary);
    return stream_kernel(std::move(name), KernelKind::kSoftmax, count, bytes_each,
                         Precision::kFp32, flops_each);
  }
  [[nodiscard]] double added_embeddings() const {
    const bool learned = shape.spec->positions == Positions::kLearned;
    return (learned ? 1.0 : 0.0) + (shape.spec->token_types > 0 ? 1.0 : 0.0);
  }
};

// Name of the i-th embedding added to the tokens'.
std::string added_name(const TransformerShape& shape, int i) {
  const bool learned = shape.spec->positions == Positions::kLearned;
  return learned && i == 0 ? "position embedding" : "segment embedding";
}

void embedding_forward(const Ends& ends, LayerBuilder& out) {
  const TransformerShape& shape = ends.shape;
  const double p = ends.p;
  out.forward(ends.whole_rows("token embedding", KernelKind::kEmbedding, 2.0 * p));
  if (shape.splits_tensor()) {
    out.forward(ends.whole_rows("embedding mask", KernelKind::kElementwise, 2.0 * p));
    reduce_tokens(shape, out.layer().forward);
  }
  for (int i = 0; i < static_cast<int>(ends.added_embeddings()); ++i) {
    out.forward(ends.rows(added_name(shape, i), KernelKind::kEmbedding, 3.0 * p));
  }
  if (shape.spec->embedding_norm) out.forward(norm_forward(shape));
  if (shape.dropout) {
    out.forward(
        ends.rows("embedding dropout", KernelKind::kElementwise, 2.0 * p + kMaskByte));
  }
}

// All of it is weight gradient but what the norm and the dropout pass on.
void embedding_backward(const Ends& ends, LayerBuilder& out) {
  const TransformerShape& shape = ends.shape;
  const double p = ends.p;
  if (shape.dropout) {
    out.input_grad(ends.rows("embedding dropout input-grad", KernelKind::kElementwise,
                             2.0 * p + kMaskByte));
  }
  if (shape.spec->embedding_norm) norm_backward(shape, out);
  for (int i = 0; i < static_cast<int>(ends.added_embeddings()); ++i) {
    out.weight_grad(ends.rows(added_name(shape, i) + " weight-grad", KernelKind::kEmbedding, p));
  }
  std::vector<WorkItem> gathered;
  gather_tokens(shape, gathered);
  for (WorkItem& item : gathered) out.weight_grad(std::move(item));
  // PyTorch fills a dense gradient with zeros, then adds the tokens' rows to it.
  const double table =
      static_cast<double>(shape.vocabulary) * static_cast<double>(shape.hidden());
  out.weight_grad(stream_kernel("embedding gradient zero", KernelKind::kElementwise, table, p,
                                ends.precision, 0.0));
  out.weight_grad(
      ends.whole_rows("token embedding weight-grad", KernelKind::kEmbedding, 3.0 * p));
}

void embedding_parameters(const TransformerShape& shape, LayerBuilder& out) {
  const auto h = static_cast<double>(shape.hidden());
  out.parameters(static_cast<double>(shape.vocabulary) * h);
  if (shape.spec->positions == Positions::kLearned) {
    out.parameters(static_cast<double>(shape.spec->max_sequence) * h);
  }
  if (shape.spec->token_types > 0) out.parameters(shape.spec->token_types * h);
  if (shape.spec->embedding_norm) norm_parameters(shape, out);
}

Communication row_reduction(const TransformerShape& shape, std::string name) {
  return exchange(std::move(name), ParallelAxis::kTensor, Exchange::kAllReduce,
                  kFp32Bytes * static_cast<double>(shape.tokens));
}

void loss_forward(const Ends& ends, LayerBuilder& out) {
  const TransformerShape& shape = ends.shape;
  const bool split = shape.splits_tensor();
  out.forward(ends.logits("logits to fp32", ends.p + kFp32Bytes, 0.0));
  out.forward(ends.logits("loss row maximum", kFp32Bytes, 1.0));
  if (split) out.forward(row_reduction(shape, "loss maximum all-reduce"));
  out.forward(ends.logits("loss subtract maximum", 2.0 * kFp32Bytes, 1.0));
  if (split) out.forward(row_reduction(shape, "loss target all-reduce"));
  out.forward(ends.logits("loss exponential", 2.0 * kFp32Bytes, 4.0));
  out.forward(ends.logits("loss row sum", kFp32Bytes, 1.0));
  if (split) out.forward(row_reduction(shape, "loss sum all-reduce"));
  out.forward(ends.logits("loss normalise", 2.0 * kFp32Bytes, 1.0));
}

void language_forward(const Ends& ends, LayerBuilder& out) {
  const TransformerShape& shape = ends.shape;
  gather_tokens(shape, out.layer().forward);
  out.forward(gemm_kernel("logits gemm", {shape.tokens, shape.vocabulary, shape.hidden()},
                          shape.run.logits.value_or(ends.precision)));
  if (shape.pass == Pass::kTraining) loss_forward(ends, out);
}

void language_backward(const Ends& ends, LayerBuilder& out) {
  const TransformerShape& shape = ends.shape;
  out.input_grad(ends.logits("loss input-grad", 2.0 * kFp32Bytes, 1.0));
  out.input_grad(ends.logits("logits gradient cast", ends.p + kFp32Bytes, 0.0));
  TransformerShape products = shape;
  products.run.precision = shape.run.logits.value_or(ends.precision);
  linear_backward(products, "logits", {shape.tokens, shape.hidden(), shape.vocabulary},
                  LinearSplit::kColumns, out);
}

// Input of the product, and the loss's FP32 softmax (Korthikanti et al. 2022, section 4.3).
double language_kept(const TransformerShape& shape) {
  return shape.split_stream() * shape.element +
         kFp32Bytes * static_cast<double>(shape.tokens) * static_cast<double>(shape.vocabulary);
}

// On the first token of each sample; small.
void pooler(const Ends& ends, LayerBuilder& out) {
  const TransformerShape& shape = ends.shape;
  const std::uint64_t h = shape.hidden();
  const std::uint64_t b = shape.batch;
  const double elements = static_cast<double>(b * h);
  const bool training = shape.pass == Pass::kTraining;
  const bool classifies = shape.spec->head == Head::kClassifier;
  const std::uint64_t classes = shape.spec->classes;
  out.forward(gemm_kernel("pooler gemm", {b, h, h}, ends.precision));
  out.forward(stream_kernel("pooler tanh", KernelKind::kElementwise, elements, 2.0 * ends.p,
                            ends.precision, 4.0));
  if (classifies) out.forward(gemm_kernel("classifier gemm", {b, classes, h}, ends.precision));
  const auto h2 = static_cast<double>(h) * static_cast<double>(h);
  out.parameters(h2);
  out.parameters(static_cast<double>(h));
  if (classifies) {
    out.parameters(static_cast<double>(classes * h));
    out.parameters(static_cast<double>(classes));
  }
  if (!training) return;
  const double logits = static_cast<double>(b * std::max<std::uint64_t>(classes, 1));
  out.forward(stream_kernel("loss", KernelKind::kSoftmax, logits, 2.0 * kFp32Bytes,
                            Precision::kFp32, 8.0));
  out.input_grad(stream_kernel("loss input-grad", KernelKind::kSoftmax, logits, 2.0 * kFp32Bytes,
                               Precision::kFp32, 2.0));
  if (classifies) linear_backward(shape, "classifier", {b, h, classes}, LinearSplit::kNone, out);
  out.input_grad(stream_kernel("pooler tanh input-grad", KernelKind::kElementwise, elements,
                               3.0 * ends.p, ends.precision, 4.0));
  linear_backward(shape, "pooler", {b, h, h}, LinearSplit::kNone, out);
  // The gradient of all other tokens is zero, and is written.
  out.input_grad(ends.rows("first token gradient", KernelKind::kElementwise, ends.p));
  out.keep(3.0 * elements * ends.p);
}

}  // namespace

LayerWork embedding_layer(const TransformerShape& shape) {
  const Ends ends(shape);
  LayerBuilder out("embedding");
  embedding_forward(ends, out);
  embedding_parameters(shape, out);
  out.layer().output_bytes = shape.split_stream() * ends.p;
  if (shape.pass == Pass::kRequest) return out.take();
  embedding_backward(ends, out);
  const double norm = shape.spec->embedding_norm ? shape.split_stream() * ends.p : 0.0;
  const double mask = shape.dropout ? shape.split_stream() * kMaskByte : 0.0;
  out.keep(norm + mask + kIndexBytes * static_cast<double>(shape.tokens));
  const double table =
      static_cast<double>(shape.vocabulary) * static_cast<double>(shape.hidden());
  out.layer().working_bytes = ends.p * (shape.stream() + table);
  out.layer().weight_grad_bytes = ends.p * shape.split_stream();
  return out.take();
}

LayerWork head_layer(const TransformerShape& shape) {
  const Ends ends(shape);
  const bool training = shape.pass == Pass::kTraining;
  const bool norms = shape.spec->norm_place == NormPlace::kBefore;
  LayerBuilder out("head");
  if (norms) {
    out.forward(norm_forward(shape));
    norm_parameters(shape, out);
    if (training) out.keep(shape.split_stream() * ends.p);
  }
  const double logits =
      static_cast<double>(shape.tokens) * static_cast<double>(shape.vocabulary);
  if (shape.spec->head == Head::kLanguageModel) {
    language_forward(ends, out);
    if (training) language_backward(ends, out);
    if (training) out.keep(language_kept(shape));
    const double table =
        static_cast<double>(shape.vocabulary) * static_cast<double>(shape.hidden());
    auto& tensors = shape.spec->tied_embeddings ? out.layer().shared_tensors
                                                : out.layer().parameter_tensors;
    tensors.push_back(table);
    out.layer().working_bytes = logits * (ends.p + (training ? kFp32Bytes : 0.0));
    if (training) out.layer().weight_grad_bytes = ends.p * (shape.split_stream() + logits);
    out.layer().output_bytes = logits * ends.p;
  } else if (shape.spec->head != Head::kNone) {
    pooler(ends, out);
    out.layer().output_bytes = shape.split_stream() * ends.p;
  }
  if (norms && training) norm_backward(shape, out);
  return out.take();
}

}  // namespace bubblesim::model
