// The inside of the work functions: kernels and exchanges from their shapes, and the lists of a
// layer in the making. Bytes: every operand once (what a cache holds is the kernel's time's
// matter). Arithmetic of kernels that stream is a rough count; they are bound by memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sim/model/layer_work.hpp"

namespace bubblesim::model {

// Bytes of an element: of dropout's mask; of what points elsewhere (a token's number, a maximum's
// place in its window); of FP32.
inline constexpr double kMaskByte = 1.0;
inline constexpr double kIndexBytes = 8.0;
inline constexpr double kFp32Bytes = 4.0;

/// What activations are held in: FP8 is of matrix products only, activations stay BF16.
[[nodiscard]] Precision stored(Precision precision);

/// Reads both operands, writes the product; `output_bytes` an element of the product, read too
/// where it is added to (then twice the size).
[[nodiscard]] KernelWork gemm_kernel(std::string name, GemmShape shape, Precision precision);
[[nodiscard]] KernelWork gemm_kernel(std::string name, GemmShape shape, Precision precision,
                                     double output_bytes);

/// A product for a weight gradient: left where `store` says.
[[nodiscard]] KernelWork weight_kernel(std::string name, GemmShape shape, Precision precision,
                                       GradientStore store);

/// A kernel that passes over `elements`, reading and writing `bytes` for each.
[[nodiscard]] KernelWork stream_kernel(std::string name, KernelKind kind, double elements,
                                       double bytes_each, Precision precision,
                                       double flops_each = 1.0);

[[nodiscard]] Communication exchange(std::string name, ParallelAxis axis, Exchange kind,
                                     double bytes);

/// Builds the lists of one layer. Backward items are given in the order of a whole backward pass.
class LayerBuilder {
 public:
  explicit LayerBuilder(std::string kind) { layer_.kind = std::move(kind); }

  void forward(WorkItem item) { layer_.forward.push_back(std::move(item)); }
  void input_grad(WorkItem item) { layer_.input_grad.push_back(std::move(item)); }
  void weight_grad(WorkItem item) {
    layer_.weight_grad.push_back(std::move(item));
    layer_.weight_grad_after.push_back(static_cast<std::uint32_t>(layer_.input_grad.size()));
  }
  void parameters(double elements) { layer_.parameter_tensors.push_back(elements); }
  /// The gradient of the last tensor is each tensor rank's for its own tokens.
  void split_by_tokens() { layer_.token_split_elements += layer_.parameter_tensors.back(); }
  void keep(double bytes) { layer_.activation_bytes += bytes; }
  [[nodiscard]] LayerWork& layer() { return layer_; }
  [[nodiscard]] LayerWork take() { return std::move(layer_); }

 private:
  LayerWork layer_;
};

}  // namespace bubblesim::model
