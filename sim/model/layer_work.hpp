// What a model's layers ask of one GPU under a split: kernels and exchanges, in order.
//
// Layers that are alike share one LayerWork (a 96-layer transformer has three kinds: embedding,
// block, head). Nothing here depends on a GPU or a network.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sim/model/kernel_work.hpp"

namespace bubblesim::model {

/// Among whom an exchange inside a layer goes on.
enum class Axis : std::uint8_t { kTensor, kContext, kExpert };

enum class Exchange : std::uint8_t {
  kAllReduce, kAllGather, kReduceScatter, kAllToAll,
  kRing,  ///< send to the next, receive from the previous (context parallel)
};

/// An exchange that the layer's next item waits for.
struct Communication {
  std::string name;
  Axis axis = Axis::kTensor;
  Exchange exchange = Exchange::kAllReduce;
  double bytes = 0;         ///< the whole array, as nccl-tests counts it; kRing: sent by each
  bool overlaps_next = false;  ///< runs beside the following item, which does not wait for it
};

using WorkItem = std::variant<KernelWork, Communication>;

/// How layers are split over GPUs. Sizes 1: not split.
struct Split {
  std::uint32_t tensor = 1;
  std::uint32_t context = 1;
  std::uint32_t expert = 1;
  bool sequence_parallel = false;  ///< norms and dropouts split over the tensor ranks too
};

/// What is kept for the backward pass, and what is computed again in it.
enum class Recompute : std::uint8_t {
  kNone,
  kSelective,  ///< attention scores only (Korthikanti et al. 2022)
  kFull,       ///< each layer keeps its input only
};

/// How attention is computed.
enum class AttentionKernels : std::uint8_t { kUnfused, kFlash };

struct TrainingShape {
  std::uint32_t micro_batch = 1;   ///< samples
  std::uint64_t sequence = 0;      ///< tokens; image models: ignored
  Precision precision = Precision::kFp16;
  Recompute recompute = Recompute::kNone;
  AttentionKernels attention = AttentionKernels::kUnfused;
};

/// One layer's work for one micro-batch on one GPU.
struct LayerWork {
  std::string kind;                   ///< "embedding", "block", "head", "conv3x3", ...
  std::vector<WorkItem> forward;
  std::vector<WorkItem> recompute;    ///< before the backward pass; empty: nothing
  std::vector<WorkItem> input_grad;
  std::vector<WorkItem> weight_grad;
  std::vector<double> parameter_tensors;  ///< elements on this GPU, in order of registration
  std::vector<double> expert_tensors;     ///< the same, of experts (other data-parallel group)
  double activation_bytes = 0;  ///< kept from the forward to the backward pass
  double working_bytes = 0;     ///< besides, while the backward pass of the layer runs
  double output_bytes = 0;      ///< what the next layer reads: sent where a stage ends
};

struct ModelWork {
  std::vector<LayerWork> kinds;
  std::vector<std::uint32_t> layers;  ///< first to last, into kinds
};

}  // namespace bubblesim::model
