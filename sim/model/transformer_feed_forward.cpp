// The feed-forward part of a block: two or three products and an activation.
#include "sim/model/transformer_work.hpp"

namespace bubblesim::model {
namespace {

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
