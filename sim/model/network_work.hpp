// The inside of the work functions: a whole network, one function for each family.
#pragma once

#include "sim/base/result.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/model/transformer_shape.hpp"

namespace bubblesim::model {

[[nodiscard]] Result<ModelWork> network_work(const ModelSpec& model, const Split& split,
                                             const TrainingShape& shape, Pass pass);

[[nodiscard]] Result<ModelWork> transformer_work(const TransformerSpec& spec, const Split& split,
                                                 const TrainingShape& shape, Pass pass);
[[nodiscard]] Result<ModelWork> convolutional_work(const ConvolutionalSpec& spec,
                                                   const TrainingShape& shape, Pass pass);
[[nodiscard]] Result<ModelWork> graph_work(const GraphSpec& spec, const TrainingShape& shape,
                                           Pass pass);

}  // namespace bubblesim::model
