#include "sim/model/transformer_work.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace bubblesim::model {
namespace {

constexpr std::uint64_t kVocabularyUnit = 128;
constexpr std::uint64_t kMaxTokens = std::uint64_t{1} << 40U;  // of a micro-batch
constexpr std::uint64_t kSearch = 1U << 16U;
constexpr std::uint32_t kMaxLayers = 1U << 16U;

// "tensor size 3 does not divide 16 heads; expected 2 or 4 (nearest that do)". `divides` holds
// for 1. Looks no further than kSearch away: sizes come from users.
template <class Divides>
tl::unexpected<Error> no_divisor(std::string_view axis, std::uint64_t found, std::string_view what,
                                 Divides divides, std::uint64_t limit) {
  const std::uint64_t start = std::min(found, limit + 1);
  std::uint64_t below = start - 1;
  while (below > 1 && start - below < kSearch && !divides(below)) --below;
  std::string nearest = std::to_string(below > 0 && divides(below) ? below : 1);
  std::uint64_t above = start + 1;
  while (above < limit && above - start < kSearch && !divides(above)) ++above;
  if (above <= limit && divides(above)) nearest += " or " + std::to_string(above);
  return fail(std::string(axis) + " size " + std::to_string(found) + " does not divide " +
              std::string(what) + "; expected " + nearest + " (nearest that do)");
}

std::string sizes(const TransformerSpec& spec) {
  std::string text = std::to_string(spec.heads) + " heads";
  if (spec.kv_heads != spec.heads) text += ", " + std::to_string(spec.kv_heads) + " kv heads";
  text += " and inner width " + std::to_string(spec.ffn);
  if (spec.mixture) text += ", experts of " + std::to_string(spec.mixture->expert_ffn);
  return text;
}

// A spec may come from a function, not from a checked file.
Result<Split> check_spec(const TransformerSpec& spec, const Split& split) {
  if (spec.layers > kMaxLayers) return fail("more than 65,536 layers");
  if (spec.hidden == 0 || spec.heads == 0 || spec.kv_heads == 0 || spec.ffn == 0) {
    return fail("a size of the model is 0; expected at least 1");
  }
  if (spec.head_size == 0) {
    return fail(std::to_string(spec.heads) + " heads do not divide a hidden size of " +
                std::to_string(spec.hidden));
  }
  return split;
}

Result<Split> check_sizes(const Split& split) {
  if (split.tensor == 0 || split.context == 0 || split.expert == 0) {
    return fail("a split has size 0; expected at least 1");
  }
  if (!(split.expert_load >= 1.0) || split.expert_load > 1e6) {
    return fail("expert_load " + std::to_string(split.expert_load) +
                "; expected 1 to 1e6, the busiest rank over the mean");
  }
  const double own = split.own_expert_load.value_or(split.expert_load);
  if (!(own >= 0.0) || own > split.expert_load) {
    return fail("own_expert_load " + std::to_string(own) + "; expected 0 to expert_load " +
                std::to_string(split.expert_load));
  }
  return split;
}

Result<Split> check_tokens(const Split& split, const TrainingShape& run) {
  const std::uint64_t s = run.sequence;
  if (run.micro_batch == 0 || s == 0) return fail("no sample or no token; expected at least 1");
  if (s > kMaxTokens / run.micro_batch) return fail("more than 2^40 tokens in a micro-batch");
  const auto by_context = [&](std::uint64_t c) { return s % c == 0; };
  if (!by_context(split.context)) {
    return no_divisor("context", split.context, "a sequence of " + std::to_string(s), by_context,
                      s);
  }
  const std::uint64_t local = s / split.context;
  const auto by_tensor = [&](std::uint64_t t) { return local % t == 0; };
  if (split.sequence_parallel && !by_tensor(split.tensor)) {
    return no_divisor("tensor (with sequence parallel)", split.tensor,
                      "a sequence of " + std::to_string(local), by_tensor, local);
  }
  if (split.context > 1 && run.attention == AttentionKernels::kUnfused) {
    return fail("context parallel with unfused attention; expected fused (flash) attention");
  }
  return split;
}

}  // namespace

double TransformerShape::stream() const {
  return static_cast<double>(tokens) * static_cast<double>(spec->hidden);
}

double TransformerShape::split_stream() const {
  return static_cast<double>(split_tokens) * static_cast<double>(spec->hidden);
}

double TransformerShape::gathered_stream() const {
  return static_cast<double>(gathered_tokens) * static_cast<double>(spec->hidden);
}

double TransformerShape::scores() const {
  const auto s = static_cast<double>(sequence);
  return static_cast<double>(batch * heads) * s * s;
}

bool TransformerShape::fuses_softmax() const {
  if (!run.fused_softmax) return true;
  return element < kFp32Bytes && sequence > 16 && sequence <= *run.fused_softmax &&
         sequence % 4 == 0 && batch * heads % 4 == 0;
}

double TransformerShape::score_element() const { return fuses_softmax() ? element : kFp32Bytes; }

std::uint64_t padded_vocabulary(std::uint64_t rows, std::uint32_t tensor) {
  if (tensor <= 1) return rows;
  const std::uint64_t unit = kVocabularyUnit * tensor;
  return (rows + unit - 1) / unit * unit;
}

Result<Split> check_split(const TransformerSpec& spec, const Split& split) {
  BUBBLESIM_RETURN_IF_ERROR(check_sizes(split));
  BUBBLESIM_RETURN_IF_ERROR(check_spec(spec, split));
  const auto divides = [&](std::uint64_t t) {
    const bool experts = !spec.mixture || spec.mixture->expert_ffn % t == 0;
    return spec.heads % t == 0 && spec.kv_heads % t == 0 && spec.ffn % t == 0 && experts;
  };
  if (!divides(split.tensor)) {
    return no_divisor("tensor", split.tensor, sizes(spec), divides, spec.heads);
  }
  const std::uint64_t experts = spec.mixture ? spec.mixture->experts : 1;
  const auto by_expert = [&](std::uint64_t e) { return experts % e == 0; };
  if (!by_expert(split.expert)) {
    return no_divisor("expert", split.expert, std::to_string(experts) + " expert(s)", by_expert,
                      experts);
  }
  return split;
}

Result<TransformerShape> transformer_shape(const TransformerSpec& spec, const Split& split,
                                           const TrainingShape& run, Pass pass) {
  BUBBLESIM_RETURN_IF_ERROR(check_split(spec, split));
  BUBBLESIM_RETURN_IF_ERROR(check_tokens(split, run));
  TransformerShape out;
  out.spec = &spec;
  out.split = split;
  out.run = run;
  out.pass = pass;
  out.element = bytes_of(run.precision == Precision::kFp8 ? Precision::kBf16 : run.precision);
  out.batch = run.micro_batch;
  out.sequence = run.sequence / split.context;
  out.tokens = out.batch * out.sequence;
  out.split_tokens = out.splits_sequence() ? out.tokens / split.tensor : out.tokens;
  out.heads = spec.heads / split.tensor;
  out.kv_heads = spec.kv_heads / split.tensor;
  out.query_columns = out.heads * spec.head_size;
  out.kv_columns = out.kv_heads * spec.head_size;
  out.ffn = spec.ffn / split.tensor;
  out.vocabulary = padded_vocabulary(spec.vocabulary, split.tensor) / split.tensor;
  out.dropout = spec.dropout && pass == Pass::kTraining;
  return out;
}

namespace {

// Norms, linear layers and the exchanges around them.

constexpr double kNormFlops = 8.0;  // an element: mean, variance, scale, shift; a rough count

std::string norm_name(const TransformerShape& shape) {
  return shape.spec->norm == Norm::kRms ? "rmsnorm" : "layernorm";
}

double array_bytes(const TransformerShape& shape) { return shape.stream() * shape.element; }

Communication gather(const TransformerShape& shape, std::string name) {
  return exchange(std::move(name), ParallelAxis::kTensor, Exchange::kAllGather, array_bytes(shape));
}

Communication reduce(const TransformerShape& shape, const std::string& name) {
  return shape.splits_sequence()
             ? exchange(name + " reduce-scatter", ParallelAxis::kTensor, Exchange::kReduceScatter,
                        array_bytes(shape))
             : exchange(name + " all-reduce", ParallelAxis::kTensor, Exchange::kAllReduce,
                        array_bytes(shape));
}

}  // namespace

KernelWork norm_forward(const TransformerShape& shape) {
  return stream_kernel(norm_name(shape), KernelKind::kNormalisation, shape.split_stream(),
                       2.0 * shape.element, stored(shape.run.precision), kNormFlops);
}

void norm_backward(const TransformerShape& shape, LayerBuilder& out) {
  const Precision precision = stored(shape.run.precision);
  // Reads the output's gradient and the input; writes the input's gradient.
  out.input_grad(stream_kernel(norm_name(shape) + " input-grad", KernelKind::kNormalisation,
                               shape.split_stream(), 3.0 * shape.element, precision, kNormFlops));
  // Reads the same two again and sums over tokens.
  out.weight_grad(stream_kernel(norm_name(shape) + " weight-grad", KernelKind::kNormalisation,
                                shape.split_stream(), 2.0 * shape.element, precision, 4.0));
}

void norm_parameters(const TransformerShape& shape, LayerBuilder& out) {
  const auto width = static_cast<double>(shape.hidden());
  const int tensors = shape.spec->norm == Norm::kLayer ? 2 : 1;
  for (int i = 0; i < tensors; ++i) {
    out.parameters(width);
    if (shape.splits_sequence()) out.split_by_tokens();
  }
}

void gather_tokens(const TransformerShape& shape, std::vector<WorkItem>& items) {
  if (shape.splits_sequence()) items.push_back(gather(shape, "tokens all-gather"));
}

void reduce_tokens(const TransformerShape& shape, std::vector<WorkItem>& items) {
  if (shape.splits_tensor()) items.push_back(reduce(shape, "output"));
}

void linear_backward(const TransformerShape& shape, const std::string& name, LinearSizes sizes,
                     LinearSplit split, LayerBuilder& out) {
  const Precision precision = shape.run.precision;
  const bool columns = split == LinearSplit::kColumns;
  if (columns && shape.splits_sequence()) {
    out.weight_grad(gather(shape, name + " input all-gather"));
  }
  if (split == LinearSplit::kRows && shape.splits_sequence()) {
    out.input_grad(gather(shape, name + " gradient all-gather"));
  }
  out.input_grad(gemm_kernel(name + " gemm input-grad",
                             {sizes.tokens, sizes.inputs, sizes.outputs}, precision));
  if (columns && shape.splits_tensor()) out.input_grad(reduce(shape, name + " gradient"));
  out.weight_grad(weight_kernel(name + " gemm weight-grad",
                                {sizes.outputs, sizes.inputs, sizes.tokens}, precision,
                                shape.run.gradients));
}

void bias_backward(const TransformerShape& shape, const std::string& name, double elements,
                   LayerBuilder& out) {
  if (!shape.spec->biases) return;
  out.weight_grad(stream_kernel(name + " bias weight-grad", KernelKind::kElementwise, elements,
                                shape.element, stored(shape.run.precision)));
}

namespace {

// The feed-forward part of a block: two or three products and an activation.

constexpr double kActivationFlops = 10.0;  // an element of GELU or SiLU; a rough count

std::string name_of(const TransformerShape& shape) {
  if (shape.spec->gated) return "swiglu";
  return shape.spec->biases ? "bias gelu" : "gelu";
}

double elements(const TransformerShape& shape, std::uint64_t width) {
  return static_cast<double>(shape.tokens) * static_cast<double>(width);
}

}  // namespace

std::uint64_t up_columns(const TransformerShape& shape, std::uint64_t inner) {
  return shape.spec->gated ? 2 * inner : inner;
}

KernelWork activation_forward(const TransformerShape& shape, double count) {
  const double arrays = shape.spec->gated ? 3.0 : 2.0;
  return stream_kernel(name_of(shape), KernelKind::kElementwise, count, arrays * shape.element,
                       stored(shape.run.precision), kActivationFlops);
}

KernelWork activation_backward(const TransformerShape& shape, double count) {
  const double arrays = shape.spec->gated ? 5.0 : 3.0;
  return stream_kernel(name_of(shape) + " input-grad", KernelKind::kElementwise, count,
                       arrays * shape.element, stored(shape.run.precision),
                       2.0 * kActivationFlops);
}

void dense_forward(const TransformerShape& shape, std::uint64_t inner,
                   std::vector<WorkItem>& items) {
  const Precision precision = shape.run.precision;
  const std::uint64_t h = shape.hidden();
  gather_tokens(shape, items);
  items.push_back(gemm_kernel("up gemm", {shape.tokens, up_columns(shape, inner), h}, precision));
  items.push_back(activation_forward(shape, elements(shape, inner)));
  items.push_back(gemm_kernel("down gemm", {shape.tokens, h, inner}, precision));
  reduce_tokens(shape, items);
}

void dense_backward(const TransformerShape& shape, std::uint64_t inner, LayerBuilder& out) {
  const std::uint64_t h = shape.hidden();
  const std::uint64_t up = up_columns(shape, inner);
  linear_backward(shape, "down", {shape.tokens, inner, h}, LinearSplit::kRows, out);
  out.input_grad(activation_backward(shape, elements(shape, inner)));
  linear_backward(shape, "up", {shape.tokens, h, up}, LinearSplit::kColumns, out);
  bias_backward(shape, "up", elements(shape, up), out);
}

}  // namespace bubblesim::model
