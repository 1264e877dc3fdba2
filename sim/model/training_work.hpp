// The work of training a model: the kernels that each layer launches for one micro-batch on one
// GPU, and the memory that it holds. The kernels are those of Megatron-LM (transformers) and
// PyTorch (images, graphs of branches), one by one.
//
// Approximations: bytes count each operand once; tokens spread evenly over experts except for the
// loads of ranks in Split; casts of weights under PyTorch's autocast are left out. The plan adds
// collectives of gradients (data parallel, norms' weights under sequence parallel, tied
// embeddings).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/model/model_spec.hpp"

namespace bubblesim::model {

/// A split that does not divide the model is a fault that names the nearest split that does. Models
/// of images and of branches are not split within a layer. A sequence of 0 means as many tokens as
/// the model has positions; branches state their own. The cost grows with the kinds of layers, not
/// with their number.
[[nodiscard]] Result<ModelWork> training_work(const ModelSpec& model, const Split& split,
                                              const TrainingShape& shape);

/// Elements of all tensors of the unsplit model; a tied tensor counts once.
[[nodiscard]] Result<double> parameter_count(const ModelSpec& model);

// The optimiser's step on one GPU: multi-tensor kernels that stream over gradients, weights and
// states, and the memory of these arrays.
//
// Sources: apex csrc/multi_tensor_*.cu (arrays read and written) and multi_tensor_apply.cuh
// (65,536 elements a block; a launch takes 320 blocks at most, and 110 to 30 tensors by the number
// of arrays); megatron/core/optimizer (their order). Memory as ZeRO counts it (Rajbhandari et al.
// 2020, section 3.1): FP16 weights 2 and gradients 2, FP32 weights 4 and two moments of 4: 16 bytes
// a parameter; 18 where gradients add up in FP32.

/// The most elements that one optimiser step may update; it bounds the list to half a million
/// launches.
inline constexpr double kMaxElements = 1e13;

enum class Optimizer : std::uint8_t { kAdam, kSgdMomentum };
enum class GradientClipping : std::uint8_t { kNone, kByNorm };

struct OptimizerSpec {
  Optimizer kind = Optimizer::kAdam;
  Precision weights = Precision::kFp16;  ///< two bytes or fewer: FP32 copies are states
  GradientStore gradients = GradientStore::kAccumulateFp32;
  GradientClipping clipping = GradientClipping::kByNorm;
};

/// Bytes a parameter.
struct OptimizerMemory {
  double weights = 0;    ///< of the weights that layers read
  double gradients = 0;
  double states = 0;     ///< FP32 copies of weights, and moments
  [[nodiscard]] double total() const { return weights + gradients + states; }
};

[[nodiscard]] OptimizerMemory optimizer_memory(const OptimizerSpec& spec);

/// The step over `elements` parameters of one GPU (its share, if states are partitioned), in order:
/// unscaling with the check for overflow (FP16 only), norm and scaling (clipping), update, copy to
/// the weights that layers read, zeroing of the gradients. Many small `tensors` take more launches,
/// each with an equal share. The plan adds the exchange of the norm among GPUs. Faults: elements
/// that are NaN, negative or more than 1e13, or more than 1e7 tensors.
[[nodiscard]] Result<std::vector<WorkItem>> optimizer_work(double elements,
                                                           const OptimizerSpec& spec,
                                                           std::uint32_t tensors = 1);

}  // namespace bubblesim::model
