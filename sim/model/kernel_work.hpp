// What a kernel has to do, before anyone says on which GPU: its kind, shape, arithmetic and
// memory traffic. sim/model/kernel_time.hpp turns it into a launch and a duration.
#pragma once

#include <cstdint>
#include <string>

namespace bubblesim::model {

/// Kernels of one kind share an efficiency curve.
enum class KernelKind : std::uint8_t {
  kGemm,           ///< dense matrix product, also batched
  kAttention,      ///< fused attention (flash): scores never leave the SM
  kConvolution,    ///< implicit matrix product
  kElementwise,    ///< bias, activation, dropout, residual, casts, copies
  kNormalisation,  ///< layer, RMS and batch normalisation: a row is read, reduced, written
  kSoftmax,        ///< of unfused attention, with its mask and scale; of the loss
  kEmbedding,      ///< gather of rows, and scatter-add of their gradients
  kOptimizer,      ///< multi-tensor updates: streams over parameters and states
};

enum class Precision : std::uint8_t { kFp32, kTf32, kFp16, kBf16, kFp8 };

/// Bytes of an element in memory.
[[nodiscard]] double bytes_of(Precision precision);

/// `batch` products of (m x k) by (k x n). Attention: m queries, n keys, k head size, batch =
/// heads x samples. Convolution: the implicit product.
struct GemmShape {
  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::uint64_t batch = 1;
};

struct KernelWork {
  std::string name;  ///< as a timeline shows it: "qkv gemm", "attention input-grad"
  KernelKind kind = KernelKind::kElementwise;
  Precision precision = Precision::kFp16;
  double flops = 0;        ///< arithmetic operations; a multiply-add counts as 2
  double bytes = 0;        ///< read from and written to DRAM, at least once each
  GemmShape gemm;          ///< kGemm, kAttention, kConvolution
  double elements = 0;     ///< of the output; the other kinds
  /// kAttention of single tokens that shares a kernel with prompts: queries of the longest of them;
  /// 0: it is a kernel by itself.
  std::uint64_t prompt_queries = 0;
};

}  // namespace bubblesim::model
