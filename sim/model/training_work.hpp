// The work of training a model: what each layer launches for one micro-batch on one GPU, and what
// it holds. Kernel for kernel as Megatron-LM (transformers) and PyTorch (images, graphs of
// branches) launch them.
//
// What is approximated: bytes count each operand once; collectives of gradients (data parallel,
// norms' weights under sequence parallel, tied embeddings) are not here but with the plan; tokens
// spread over experts evenly but for Split's loads of ranks; casts of weights under PyTorch's
// autocast are left out.
#pragma once

#include "sim/base/result.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/model/model_spec.hpp"

namespace bubblesim::model {

/// A split that does not divide the model is a fault that names the nearest that does. Models of
/// images and of branches are not split within a layer. A sequence of 0 is as many tokens as the
/// model has positions; branches have theirs. Cost: the kinds of layers, not their
/// number.
[[nodiscard]] Result<ModelWork> training_work(const ModelSpec& model, const Split& split,
                                              const TrainingShape& shape);

/// Elements of all tensors, unsplit; tied ones once.
[[nodiscard]] Result<double> parameter_count(const ModelSpec& model);

}  // namespace bubblesim::model
