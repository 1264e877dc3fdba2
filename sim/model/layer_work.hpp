// Work independent of a GPU: kernels (kind, shape, arithmetic and memory traffic;
// sim/model/kernel_time.hpp turns each into a launch and a duration), and the kernels and exchanges
// of a model's layers on one GPU under a split, in order.
//
// Equal layers share one LayerWork (a 96-layer transformer has three kinds: embedding, block,
// head). Nothing here depends on a GPU or a network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

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
  GemmShape gemm;          ///< of kGemm, kAttention, kConvolution
  double elements = 0;     ///< of the output; for the other kinds
  /// kAttention of single tokens in one kernel with prompts: queries of the longest prompt; 0: it
  /// is a kernel by itself.
  std::uint64_t prompt_queries = 0;
};

/// The ranks that take part in an exchange inside a layer.
enum class ParallelAxis : std::uint8_t { kTensor, kContext, kExpert };

enum class Exchange : std::uint8_t {
  kAllReduce, kAllGather, kReduceScatter, kAllToAll,
  kRing,  ///< send to the next, receive from the previous (context parallel)
};

/// An exchange that the layer's next item waits for.
struct Communication {
  std::string name;
  ParallelAxis axis = ParallelAxis::kTensor;
  Exchange exchange = Exchange::kAllReduce;
  double bytes = 0;         ///< the whole array, as in nccl-tests; kRing: sent by each rank
  bool overlaps_next = false;  ///< runs beside the next item, which does not wait for it
  /// Bytes that kernels fused into the exchange read and write; each rank takes its share.
  double fused_bytes = 0;
};

/// Whether NVLink joins every two GPUs of a server.
enum class GpuMesh : std::uint8_t { kPartial, kFull };

/// How the GPUs of a language-model server reduce an array in each other's memory: in one stage
/// each reads the arrays of all others; in two it reduces a share of all, then reads the others'.
struct ServerReduce {
  std::uint32_t stages = 1;
  double port_bytes = 0;  ///< that a GPU reads
};

/// The choice of vLLM's CustomAllreduce (0.15 to 0.19; csrc/custom_all_reduce.cuh) for GPUs of one
/// node; nothing: NCCL reduces. Not simulated: symmetric memory, which on Hopper replaces rings and
/// the two stages of eight GPUs; the fusion of a reduction with the norm after it (FlashInfer, by
/// default from 0.16 on).
[[nodiscard]] constexpr std::optional<ServerReduce> server_reduce(double bytes, std::uint32_t gpus,
                                                                  GpuMesh mesh) {
  constexpr double kKiB = 1024;
  const bool able = gpus == 2 || (mesh == GpuMesh::kFull && gpus % 2 == 0 && gpus <= 8);
  if (!able || bytes >= 8192 * kKiB) return std::nullopt;
  const double others = gpus - 1;
  const bool one = gpus == 2 || bytes < (gpus == 4 ? 512 : 256) * kKiB;
  return one ? ServerReduce{1, others * bytes} : ServerReduce{2, 2 * others / gpus * bytes};
}

using WorkItem = std::variant<KernelWork, Communication>;

/// How layers are split over GPUs. Sizes 1: not split.
struct Split {
  std::uint32_t tensor = 1;
  std::uint32_t context = 1;
  std::uint32_t expert = 1;
  bool sequence_parallel = false;  ///< norms and dropouts, too, are split over the tensor ranks
  double expert_load = 1.0;        ///< tokens of the busiest expert rank over the mean, >= 1
  /// Tokens of this GPU's expert rank over the mean, at most `expert_load`; nothing: it is the
  /// busiest.
  std::optional<double> own_expert_load;
};

/// Which data are kept for the backward pass, and which are recomputed in it.
enum class Recompute : std::uint8_t {
  kNone,
  kSelective,  ///< attention scores only (Korthikanti et al. 2022)
  kFull,       ///< each layer keeps its input only
};

/// How attention is computed.
enum class AttentionKernels : std::uint8_t { kUnfused, kFlash };

/// Where a weight-gradient kernel stores its result.
enum class GradientStore : std::uint8_t {
  kWrite,           ///< written in the precision of the weights (PyTorch)
  kAccumulateFp32,  ///< added to a 4-byte buffer within the kernel (Megatron-LM)
};

struct TrainingShape {
  std::uint32_t micro_batch = 1;   ///< samples
  std::uint64_t sequence = 0;      ///< tokens; image models: ignored
  Precision precision = Precision::kFp16;
  Recompute recompute = Recompute::kNone;
  AttentionKernels attention = AttentionKernels::kUnfused;
  GradientStore gradients = GradientStore::kWrite;
  /// Precision of the head's matrix products; nothing: as all others.
  std::optional<Precision> logits;
  /// Longest sequence of which one kernel scales, masks and normalises unfused scores, if other
  /// conditions hold (TransformerShape::fuses_softmax); nothing: it always does.
  std::optional<std::uint64_t> fused_softmax;
};

/// One layer's work for one micro-batch on one GPU.
struct LayerWork {
  std::string kind;                   ///< "embedding", "block", "head", "conv3x3", ...
  std::vector<WorkItem> forward;
  std::vector<WorkItem> recompute;    ///< before the backward pass; may be empty
  std::vector<WorkItem> input_grad;
  std::vector<WorkItem> weight_grad;
  /// How many items of `input_grad` come before each item of `weight_grad` if the two are not
  /// separated; see backward_items().
  std::vector<std::uint32_t> weight_grad_after;
  std::vector<double> parameter_tensors;  ///< elements on this GPU, in order of registration
  std::vector<double> expert_tensors;     ///< the same, of experts (another data-parallel group)
  /// Tensors of an earlier layer that this layer uses, too (tied embeddings): if the two layers are
  /// on different GPUs, held here again, with gradients added up.
  std::vector<double> shared_tensors;
  /// Elements of `parameter_tensors` for which each tensor rank has only its own tokens' gradients,
  /// if the sequence is split (norms, biases after a row-split product, routers).
  double token_split_elements = 0;
  double activation_bytes = 0;  ///< kept from the forward to the backward pass
  /// Kept for weight_grad from input_grad on: inputs and output gradients of the layer's products
  /// (32 s b h of a GPT block, Qi et al. 2024, table 1).
  double weight_grad_bytes = 0;
  double working_bytes = 0;     ///< further bytes while the layer's backward pass runs
  double output_bytes = 0;      ///< read by the next layer: sent where a stage ends
};

struct ModelWork {
  std::vector<LayerWork> kinds;
  std::vector<std::uint32_t> layers;  ///< first to last; indices into kinds
  /// The layers whose output each layer reads. Empty: a chain.
  std::vector<std::vector<std::uint32_t>> inputs;
};

/// Whether exchanges within a backward pass overlap with products that do not need them.
enum class BackwardExchanges : std::uint8_t { kOverlapped, kSerial };

/// The whole backward pass of a layer, in the order of a framework that does not separate input and
/// weight gradients: each weight gradient follows its input gradient. Overlapped: the all-reduce
/// (reduce-scatter) of an input gradient runs beside the weight gradient's product, and the second
/// all-gather of a layer's input beside the input gradient's, as in Megatron-LM
/// (LinearWithGradAccumulationAndAsyncCommunication, tensor_parallel/layers.py).
[[nodiscard]] std::vector<WorkItem> backward_items(const LayerWork& layer,
                                                   BackwardExchanges exchanges);

/// Floating-point operations of all kernels in a list.
[[nodiscard]] double flops_of(const std::vector<WorkItem>& items);
/// Elements of all parameters of a layer on one GPU, including experts.
[[nodiscard]] double parameters_of(const LayerWork& layer);

// Helpers of the work functions: kernels and exchanges from their shapes, and builders of a layer's
// lists. Bytes: every operand once (kernel times account for caches). Arithmetic of streaming
// kernels is a rough count; memory bounds them.

// Bytes of an element: dropout's mask; an index (of a token, or of a maximum in its window); FP32.
inline constexpr double kMaskByte = 1.0;
inline constexpr double kIndexBytes = 8.0;
inline constexpr double kFp32Bytes = 4.0;

/// The precision of stored activations: FP8 is for matrix products only, activations stay BF16.
[[nodiscard]] Precision stored(Precision precision);

/// Reads both operands, writes the product; `output_bytes` for each element of the product, twice
/// as many if the kernel adds to it (reads and writes).
[[nodiscard]] KernelWork gemm_kernel(std::string name, GemmShape shape, Precision precision);
[[nodiscard]] KernelWork gemm_kernel(std::string name, GemmShape shape, Precision precision,
                                     double output_bytes);

/// A product for a weight gradient, stored as `store` says.
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
  /// Each tensor rank has the last tensor's gradient only for its own tokens.
  void split_by_tokens() { layer_.token_split_elements += layer_.parameter_tensors.back(); }
  void keep(double bytes) { layer_.activation_bytes += bytes; }
  [[nodiscard]] LayerWork& layer() { return layer_; }
  [[nodiscard]] LayerWork take() { return std::move(layer_); }

 private:
  LayerWork layer_;
};

}  // namespace bubblesim::model
