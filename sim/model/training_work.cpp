#include "sim/model/training_work.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "sim/model/transformer_work.hpp"
#include "sim/model/work_items.hpp"

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

namespace {

// apex: chunk size 2048 x 32, depth_to_max_blocks 320; depth_to_max_tensors, by arrays.
constexpr double kElementsOfLaunch = 65536.0 * 320.0;
constexpr std::array<double, 5> kTensorsOfLaunch{110, 64, 48, 36, 30};
constexpr std::uint32_t kMaxTensors = 10000000;

bool has_copies(const OptimizerSpec& spec) { return bytes_of(spec.weights) < kFp32Bytes; }

double gradient_bytes(const OptimizerSpec& spec) {
  if (spec.gradients == GradientStore::kAccumulateFp32) return kFp32Bytes;
  return bytes_of(stored(spec.weights));
}

// A pass over all elements: `arrays` lists of tensors in one launch.
class Step {
 public:
  Step(double elements, std::uint32_t tensors) : elements_(elements), tensors_(tensors) {}

  void add(const std::string& name, std::size_t arrays, double bytes_each, double flops_each) {
    if (elements_ <= 0.0) return;
    const double by_tensors = std::ceil(tensors_ / kTensorsOfLaunch[arrays - 1]);
    const double launches = std::max(std::ceil(elements_ / kElementsOfLaunch), by_tensors);
    const KernelWork launch = stream_kernel(name, KernelKind::kOptimizer, elements_ / launches,
                                            bytes_each, Precision::kFp32, flops_each);
    items_.insert(items_.end(), static_cast<std::size_t>(launches), launch);
  }
  [[nodiscard]] std::vector<WorkItem> take() { return std::move(items_); }

 private:
  double elements_;
  double tensors_;
  std::vector<WorkItem> items_;
};

}  // namespace

OptimizerMemory optimizer_memory(const OptimizerSpec& spec) {
  const double moments = spec.kind == Optimizer::kAdam ? 2.0 : 1.0;
  const double copies = has_copies(spec) ? 1.0 : 0.0;
  return {bytes_of(stored(spec.weights)), gradient_bytes(spec), kFp32Bytes * (moments + copies)};
}

Result<std::vector<WorkItem>> optimizer_work(double elements, const OptimizerSpec& spec,
                                             std::uint32_t tensors) {
  if (!(elements >= 0.0) || elements > kMaxElements) {
    return fail("an optimiser over " + std::to_string(elements) +
                " parameters; expected 0 to 1e13");
  }
  if (tensors > kMaxTensors) return fail("an optimiser over more than 1e7 tensors");
  Step step(elements, tensors);
  const double g = gradient_bytes(spec);
  if (spec.weights == Precision::kFp16) step.add("gradient unscale", 1, 2.0 * g, 2.0);
  if (spec.clipping == GradientClipping::kByNorm) {
    step.add("gradient norm", 1, g, 2.0);
    step.add("gradient clip", 2, 2.0 * g, 1.0);
  }
  // Gradient read; weights and moments read and written.
  if (spec.kind == Optimizer::kAdam) {
    step.add("adam", 4, g + 6.0 * kFp32Bytes, 16.0);
  } else {
    step.add("sgd momentum", 3, g + 4.0 * kFp32Bytes, 5.0);
  }
  if (has_copies(spec)) {
    step.add("weight copy", 2, kFp32Bytes + bytes_of(stored(spec.weights)), 0.0);
  }
  step.add("gradient zero", 1, g, 0.0);
  return step.take();
}

}  // namespace bubblesim::model
