#include "sim/model/training_work.hpp"

#include <string>
#include <utility>

#include "sim/model/network_work.hpp"
#include "sim/model/transformer_work.hpp"

namespace bubblesim::model {
namespace {

void append(ModelWork& work, LayerWork layer) {
  work.layers.push_back(static_cast<std::uint32_t>(work.kinds.size()));
  work.kinds.push_back(std::move(layer));
}

Result<Split> check_unsplit(const Split& split) {
  if (split.tensor == 1 && split.context == 1 && split.expert == 1) return split;
  return fail("this model's layers are not split; expected tensor, context and expert sizes of 1");
}

}  // namespace

Result<ModelWork> transformer_work(const TransformerSpec& spec, const Split& split,
                                   const TrainingShape& run, Pass pass) {
  TrainingShape filled = run;
  if (filled.sequence == 0) filled.sequence = spec.max_sequence;
  BUBBLESIM_ASSIGN_OR_RETURN(const TransformerShape shape,
                             transformer_shape(spec, split, filled, pass));
  ModelWork work;
  append(work, embedding_layer(shape));
  std::uint32_t dense = 0;
  std::uint32_t experts = 0;
  for (std::uint32_t layer = 0; layer < spec.layers; ++layer) {
    const bool mixed = has_experts(spec, layer);
    std::uint32_t& kind = mixed ? experts : dense;
    if (kind == 0) {
      kind = static_cast<std::uint32_t>(work.kinds.size());
      work.kinds.push_back(
          block_layer(shape, mixed ? FeedForward::kExperts : FeedForward::kDense));
    }
    work.layers.push_back(kind);
  }
  const bool nothing = spec.head == Head::kNone && spec.norm_place == NormPlace::kAfter;
  if (!nothing) append(work, head_layer(shape));
  return work;
}

Result<ModelWork> network_work(const ModelSpec& model, const Split& split,
                               const TrainingShape& shape, Pass pass) {
  BUBBLESIM_RETURN_IF_ERROR(check_sequence(model, shape.sequence));
  auto work = [&]() -> Result<ModelWork> {
    if (const auto* spec = std::get_if<TransformerSpec>(&model.network)) {
      return transformer_work(*spec, split, shape, pass);
    }
    BUBBLESIM_RETURN_IF_ERROR(check_unsplit(split));
    if (shape.micro_batch == 0) return fail("no sample in a micro-batch; expected at least 1");
    if (const auto* spec = std::get_if<ConvolutionalSpec>(&model.network)) {
      return convolutional_work(*spec, shape, pass);
    }
    return graph_work(std::get<GraphSpec>(model.network), shape, pass);
  }();
  if (!work) return fail(model.name + ": " + work.error().message);
  return work;
}

Result<ModelWork> training_work(const ModelSpec& model, const Split& split,
                                const TrainingShape& shape) {
  return network_work(model, split, shape, Pass::kTraining);
}

Result<double> parameter_count(const ModelSpec& model) {
  TrainingShape shape;
  shape.sequence = 1;
  BUBBLESIM_ASSIGN_OR_RETURN(const ModelWork work, training_work(model, Split{}, shape));
  double sum = 0;
  for (const std::uint32_t kind : work.layers) sum += parameters_of(work.kinds[kind]);
  return sum;
}

}  // namespace bubblesim::model
