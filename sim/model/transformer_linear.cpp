// Norms, linear layers and the exchanges around them.
#include "sim/model/transformer_work.hpp"

namespace bubblesim::model {
namespace {

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

}  // namespace bubblesim::model
