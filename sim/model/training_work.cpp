#include "sim/model/training_work.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

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

namespace {

// Networks of branches beside each other whose outputs are joined (the models of GraphPipe,
// ASPLOS 2025, appendix A.2). A layer's inputs stand in ModelWork::inputs.


class GraphBuilder {
 public:
  GraphBuilder(const TrainingShape& shape, Pass pass)
      : shape_(shape),
        pass_(pass),
        precision_(stored(shape.precision)),
        p_(bytes_of(precision_)),
        batch_(shape.micro_batch) {}

  /// Blocks have theirs already; other layers are cheap to hold, and keep what they keep.
  Result<ModelWork> build(const GraphSpec& spec) {
    std::vector<std::uint32_t> ends;
    std::uint64_t joined = 0;
    std::uint64_t sequence = 1;
    for (const BranchSpec& branch : spec.branches) {
      BUBBLESIM_ASSIGN_OR_RETURN(const auto kinds, branch_kinds(branch));
      for (std::uint32_t copy = 0; copy < branch.repeat; ++copy) {
        std::vector<std::uint32_t> inputs;
        for (const std::uint32_t kind : kinds) inputs = {place(kind, std::move(inputs))};
        ends.push_back(inputs.front());
        joined += branch.width;
      }
      if (branch.kind == BranchSpec::Kind::kTransformer) sequence = branch.sequence;
    }
    batch_ *= sequence;  // branches of tokens are joined token by token
    std::uint32_t last = place(kind(join_layer(joined)), std::move(ends));
    std::uint64_t width = joined;
    for (std::uint32_t i = 0; i < spec.join_layers; ++i) {
      last = place(kind(relu_layer(width, spec.join_width)), {last});
      width = spec.join_width;
    }
    place(kind(output_layer(width, spec.outputs)), {last});
    return std::move(work_);
  }

 private:
  std::uint32_t kind(LayerWork layer) {
    work_.kinds.push_back(std::move(layer));
    return static_cast<std::uint32_t>(work_.kinds.size() - 1);
  }
  // Appends a layer; returns its place.
  std::uint32_t place(std::uint32_t kind, std::vector<std::uint32_t> inputs) {
    work_.layers.push_back(kind);
    work_.inputs.push_back(std::move(inputs));
    return static_cast<std::uint32_t>(work_.layers.size() - 1);
  }
  [[nodiscard]] KernelWork pass(std::string name, double count, double bytes_each,
                                KernelKind kind = KernelKind::kElementwise) const {
    return stream_kernel(std::move(name), kind, count, bytes_each, precision_);
  }
  [[nodiscard]] bool training() const { return pass_ == Pass::kTraining; }

  void linear(LayerBuilder& out, std::uint64_t inputs, std::uint64_t outputs) const {
    const double read = static_cast<double>(batch_) * static_cast<double>(inputs);
    const double written = static_cast<double>(batch_) * static_cast<double>(outputs);
    out.forward(gemm_kernel("linear gemm", {batch_, outputs, inputs}, shape_.precision));
    out.parameters(static_cast<double>(inputs) * static_cast<double>(outputs));
    out.parameters(static_cast<double>(outputs));
    out.layer().output_bytes = p_ * written;
    if (!training()) return;
    out.keep(p_ * read);
    out.layer().weight_grad_bytes = p_ * (read + written);
    out.input_grad(
        gemm_kernel("linear gemm input-grad", {batch_, inputs, outputs}, shape_.precision));
    out.weight_grad(weight_kernel("linear gemm weight-grad", {outputs, inputs, batch_},
                                  shape_.precision, shape_.gradients));
    out.weight_grad(pass("bias weight-grad", written, p_));
  }
  [[nodiscard]] LayerWork relu_layer(std::uint64_t inputs, std::uint64_t outputs) const {
    LayerBuilder out("feed forward");
    const double written = static_cast<double>(batch_) * static_cast<double>(outputs);
    if (training()) out.input_grad(pass("relu input-grad", written, 3.0 * p_));
    linear(out, inputs, outputs);
    out.forward(pass("relu", written, 2.0 * p_));
    out.layer().working_bytes = 2.0 * p_ * written;
    return out.take();
  }
  [[nodiscard]] LayerWork join_layer(std::uint64_t width) const {
    LayerBuilder out("join");
    const double count = static_cast<double>(batch_) * static_cast<double>(width);
    out.forward(pass("concatenate", count, 2.0 * p_));
    if (training()) out.input_grad(pass("concatenate input-grad", count, 2.0 * p_));
    out.layer().output_bytes = p_ * count;
    out.layer().working_bytes = p_ * count;
    return out.take();
  }
  [[nodiscard]] LayerWork output_layer(std::uint64_t inputs, std::uint64_t outputs) const {
    LayerBuilder out("output");
    const double count = static_cast<double>(batch_) * static_cast<double>(outputs);
    if (training()) out.input_grad(pass("loss input-grad", count, 3.0 * p_));
    linear(out, inputs, outputs);
    if (training()) out.forward(pass("loss", count, 2.0 * p_));
    return out.take();
  }
  [[nodiscard]] LayerWork bag_layer(const BranchSpec& branch) const {
    LayerBuilder out("embedding bag");
    const double written = static_cast<double>(batch_) * static_cast<double>(branch.width);
    const double rows = static_cast<double>(batch_) * branch.bag;
    KernelWork forward = pass("embedding bag", written, 0.0, KernelKind::kEmbedding);
    forward.flops = rows * static_cast<double>(branch.width);
    forward.bytes = p_ * (rows * static_cast<double>(branch.width) + written) + kIndexBytes * rows;
    out.parameters(static_cast<double>(branch.rows) * static_cast<double>(branch.width));
    if (training()) {
      KernelWork back = forward;  // the gathered rows' gradients, sparse, are added to
      back.name = "embedding bag weight-grad";
      back.bytes *= 2.0;
      out.weight_grad(std::move(back));
      out.keep(kIndexBytes * rows);
    }
    out.forward(std::move(forward));
    out.layer().output_bytes = p_ * written;
    return out.take();
  }
  /// Kinds of the branch's layers, first to last.
  Result<std::vector<std::uint32_t>> branch_kinds(const BranchSpec& branch) {
    std::vector<std::uint32_t> kinds;
    if (branch.kind == BranchSpec::Kind::kEmbeddingBag) {
      kinds.push_back(kind(bag_layer(branch)));
      return kinds;
    }
    if (branch.kind == BranchSpec::Kind::kFeedForward) {
      kinds.push_back(kind(relu_layer(branch.inputs, branch.width)));
      if (branch.layers == 1) return kinds;
      const bool same = branch.inputs == branch.width;
      const std::uint32_t inner =
          same ? kinds.front() : kind(relu_layer(branch.width, branch.width));
      for (std::uint32_t i = 1; i < branch.layers; ++i) kinds.push_back(inner);
      return kinds;
    }
    const ModelSpec like = gpt(branch.width, branch.layers, branch.heads, 1, branch.sequence);
    TransformerSpec spec = std::get<TransformerSpec>(like.network);
    spec.ffn = branch.ffn;
    spec.mask = AttentionMask::kBidirectional;
    TrainingShape run = shape_;
    run.sequence = branch.sequence;
    BUBBLESIM_ASSIGN_OR_RETURN(const TransformerShape shape,
                               transformer_shape(spec, Split{}, run, pass_));
    kinds.assign(branch.layers, kind(block_layer(shape, FeedForward::kDense)));
    return kinds;
  }

  const TrainingShape& shape_;
  Pass pass_;
  Precision precision_;
  double p_;
  std::uint64_t batch_;
  ModelWork work_;
};

}  // namespace

Result<ModelWork> graph_work(const GraphSpec& spec, const TrainingShape& shape, Pass pass) {
  return GraphBuilder(shape, pass).build(spec);
}

}  // namespace bubblesim::model
