// Attention: projections, rotary positions, and the core, fused or not.
#include <algorithm>

#include "sim/model/transformer_work.hpp"

namespace bubblesim::model {
namespace {

constexpr double kStatisticBytes = 4.0;  // flash attention keeps the log-sum of a row in FP32
constexpr double kSoftmaxFlops = 8.0;  // an element; a rough count
// Flash attention computes the scores again: five products against two (Dao et al. 2022, B.4).
constexpr double kFlashBackwardRatio = 2.5;

double columns(const TransformerShape& shape, std::uint64_t width) {
  return static_cast<double>(shape.tokens) * static_cast<double>(width);
}

bool shares_keys(const TransformerShape& shape) { return shape.kv_heads < shape.heads; }

KernelWork copy(const TransformerShape& shape, std::string name, double read, double written) {
  KernelWork work = stream_kernel(std::move(name), KernelKind::kElementwise, written, 0.0,
                                  stored(shape.run.precision), 0.0);
  work.bytes = shape.element * (read + written);
  return work;
}

KernelWork score_stream(const TransformerShape& shape, std::string name, KernelKind kind,
                        double bytes_each, double flops_each) {
  return stream_kernel(std::move(name), kind, shape.scores(), bytes_each,
                       stored(shape.run.precision), flops_each);
}

// Products of a head: queries x head size x keys in some order.
KernelWork head_gemm(const TransformerShape& shape, std::string name, std::uint64_t m,
                     std::uint64_t n, std::uint64_t k) {
  return gemm_kernel(std::move(name), {m, n, k, shape.batch * shape.heads},
                     stored(shape.run.precision));
}

// One fused kernel over the queries of this GPU and one chunk of keys. A causal mask lets it skip
// half of the whole; with context parallel the chunks are dealt so that each does as much
// (Megatron-LM context parallel, zigzag order).
KernelWork flash_kernel(const TransformerShape& shape, std::string name, double ratio) {
  const double s = static_cast<double>(shape.sequence);
  const double half = shape.spec->mask == AttentionMask::kCausal ? 0.5 : 1.0;
  const auto head = static_cast<double>(shape.spec->head_size);
  KernelWork work;
  work.name = std::move(name);
  work.kind = KernelKind::kAttention;
  work.precision = stored(shape.run.precision);
  work.gemm = {shape.sequence, shape.sequence, shape.spec->head_size, shape.batch * shape.heads};
  work.flops = ratio * half * 4.0 * shape.scores() * head;
  const double queries = columns(shape, shape.query_columns);
  const double keys = columns(shape, shape.kv_columns);
  const double rows = static_cast<double>(shape.batch * shape.heads) * s;
  work.bytes = shape.element * (2.0 * queries + 2.0 * keys) + kStatisticBytes * rows;
  work.elements = queries;
  return work;
}

// The chunk of keys and values (and of their gradients) that goes round.
Communication ring(const TransformerShape& shape, std::string name, double arrays) {
  Communication out =
      exchange(std::move(name), ParallelAxis::kContext, Exchange::kRing,
               arrays * columns(shape, shape.kv_columns) * shape.element);
  out.overlaps_next = true;
  return out;
}

void flash_forward(const TransformerShape& shape, std::vector<WorkItem>& items) {
  for (std::uint32_t chunk = 0; chunk < shape.split.context; ++chunk) {
    const bool last = chunk + 1 == shape.split.context;
    if (!last) items.push_back(ring(shape, "keys and values ring", 2.0));
    items.push_back(flash_kernel(shape, "attention", 1.0));
    if (chunk == 0) continue;
    items.push_back(stream_kernel("attention correction", KernelKind::kElementwise,
                                  columns(shape, shape.query_columns), 3.0 * shape.element,
                                  stored(shape.run.precision), 3.0));
  }
}

void flash_backward(const TransformerShape& shape, LayerBuilder& out) {
  // Row sums of gradient times output.
  out.input_grad(stream_kernel("attention row sums", KernelKind::kElementwise,
                               columns(shape, shape.query_columns), 2.0 * shape.element,
                               stored(shape.run.precision), 2.0));
  for (std::uint32_t chunk = 0; chunk < shape.split.context; ++chunk) {
    const bool last = chunk + 1 == shape.split.context;
    if (!last) out.input_grad(ring(shape, "keys, values and gradients ring", 4.0));
    KernelWork work = flash_kernel(shape, "attention input-grad", kFlashBackwardRatio);
    work.bytes *= 2.0;  // the same arrays and their gradients
    out.input_grad(std::move(work));
  }
}

enum class Direction : std::uint8_t { kForward, kBackward };

// Backward the kernels of forward in reverse. Without the fused kernel (fused_softmax.py,
// forward_torch_softmax): in FP32, as scaling by the layer's number needs it.
std::vector<WorkItem> softmax(const TransformerShape& shape, Direction direction) {
  const bool backward = direction == Direction::kBackward;
  const bool fused = shape.fuses_softmax();
  const bool cast = shape.element < shape.score_element();
  std::vector<WorkItem> items;
  const auto stream = [&](const char* name, const char* gradient, double bytes) {
    items.push_back(score_stream(shape, backward ? gradient : name, KernelKind::kElementwise,
                                 bytes, 1.0));
  };
  if (cast) stream("scores to fp32", "scores gradient cast", shape.element + kFp32Bytes);
  if (!fused) {
    stream("scores scale", "scores scale input-grad", 2.0 * kFp32Bytes);
    stream("scores mask", "scores mask input-grad", 2.0 * kFp32Bytes);
  }
  const std::string name = fused ? "scale mask softmax" : "softmax";
  items.push_back(score_stream(shape, backward ? name + " input-grad" : name, KernelKind::kSoftmax,
                               (backward ? 3.0 : 2.0) * shape.score_element(),
                               backward ? 4.0 : kSoftmaxFlops));
  if (cast) stream("softmax cast", "softmax gradient to fp32", shape.element + kFp32Bytes);
  if (backward) std::ranges::reverse(items);
  return items;
}

void unfused_forward(const TransformerShape& shape, std::vector<WorkItem>& items) {
  const std::uint64_t s = shape.sequence;
  const std::uint64_t d = shape.spec->head_size;
  const double p = shape.element;
  const double queries = columns(shape, shape.query_columns);
  if (shares_keys(shape)) {
    const double keys = columns(shape, shape.kv_columns);
    items.push_back(copy(shape, "keys and values repeat", 2.0 * keys, 2.0 * queries));
  }
  items.push_back(head_gemm(shape, "scores gemm", s, s, d));
  for (WorkItem& item : softmax(shape, Direction::kForward)) items.push_back(std::move(item));
  if (shape.dropout) {
    items.push_back(score_stream(shape, "attention dropout", KernelKind::kElementwise,
                                 2.0 * p + kMaskByte, 2.0));
  }
  items.push_back(head_gemm(shape, "values gemm", s, d, s));
  items.push_back(copy(shape, "heads copy", queries, queries));
}

void unfused_backward(const TransformerShape& shape, LayerBuilder& out) {
  const std::uint64_t s = shape.sequence;
  const std::uint64_t d = shape.spec->head_size;
  const double p = shape.element;
  const double queries = columns(shape, shape.query_columns);
  out.input_grad(copy(shape, "heads copy input-grad", queries, queries));
  out.input_grad(head_gemm(shape, "values gemm scores-grad", s, s, d));
  out.input_grad(head_gemm(shape, "values gemm values-grad", s, d, s));
  if (shape.dropout) {
    out.input_grad(score_stream(shape, "attention dropout input-grad", KernelKind::kElementwise,
                                2.0 * p + kMaskByte, 2.0));
  }
  for (WorkItem& item : softmax(shape, Direction::kBackward)) out.input_grad(std::move(item));
  out.input_grad(head_gemm(shape, "scores gemm queries-grad", s, d, s));
  out.input_grad(head_gemm(shape, "scores gemm keys-grad", s, d, s));
  if (shares_keys(shape)) {
    const double keys = columns(shape, shape.kv_columns);
    out.input_grad(copy(shape, "keys and values sum", 2.0 * queries, 2.0 * keys));
  }
}

std::uint64_t qkv_columns(const TransformerShape& shape) {
  return shape.query_columns + 2 * shape.kv_columns;
}

KernelWork rotary(const TransformerShape& shape, std::string name, std::uint64_t width) {
  return stream_kernel(std::move(name), KernelKind::kElementwise, columns(shape, width),
                       2.0 * shape.element, stored(shape.run.precision), 3.0);
}

}  // namespace

double attention_core_kept(const TransformerShape& shape) {
  if (shape.run.attention == AttentionKernels::kFlash) {
    return kStatisticBytes * static_cast<double>(shape.tokens * shape.heads);
  }
  // Softmax output; what the product reads, if that is another array; dropout's mask.
  const double p = shape.element, kept = shape.score_element();
  const double read = shape.dropout ? p + kMaskByte : p < kept ? p : 0.0;
  return (kept + read) * shape.scores();
}

void attention_core_forward(const TransformerShape& shape, std::vector<WorkItem>& items) {
  if (shape.run.attention == AttentionKernels::kFlash) return flash_forward(shape, items);
  unfused_forward(shape, items);
}

void attention_core_backward(const TransformerShape& shape, LayerBuilder& out) {
  if (shape.run.attention == AttentionKernels::kFlash) return flash_backward(shape, out);
  unfused_backward(shape, out);
}

void attention_forward(const TransformerShape& shape, std::vector<WorkItem>& items) {
  const Precision precision = shape.run.precision;
  const std::uint64_t wide = qkv_columns(shape);
  gather_tokens(shape, items);
  items.push_back(gemm_kernel("qkv gemm", {shape.tokens, wide, shape.hidden()}, precision));
  if (shape.spec->biases) {
    items.push_back(stream_kernel("qkv bias", KernelKind::kElementwise, columns(shape, wide),
                                  2.0 * shape.element, stored(precision)));
  }
  if (shape.spec->positions == Positions::kRotary) {
    items.push_back(rotary(shape, "rotary queries", shape.query_columns));
    items.push_back(rotary(shape, "rotary keys", shape.kv_columns));
  }
  attention_core_forward(shape, items);
  items.push_back(gemm_kernel("attention output gemm",
                              {shape.tokens, shape.hidden(), shape.query_columns}, precision));
  reduce_tokens(shape, items);
}

void attention_backward(const TransformerShape& shape, LayerBuilder& out) {
  const std::uint64_t wide = qkv_columns(shape);
  linear_backward(shape, "attention output", {shape.tokens, shape.query_columns, shape.hidden()},
                  LinearSplit::kRows, out);
  attention_core_backward(shape, out);
  if (shape.spec->positions == Positions::kRotary) {
    out.input_grad(rotary(shape, "rotary queries input-grad", shape.query_columns));
    out.input_grad(rotary(shape, "rotary keys input-grad", shape.kv_columns));
  }
  const double all = columns(shape, wide);
  out.input_grad(copy(shape, "qkv join input-grad", all, all));
  linear_backward(shape, "qkv", {shape.tokens, shape.hidden(), wide}, LinearSplit::kColumns, out);
  bias_backward(shape, "qkv", all, out);
}

}  // namespace bubblesim::model
