// Images: convolutions as implicit products (cuDNN), batch normalisation, pooling, linear layers,
// and ResNet's blocks, as PyTorch launches them one by one.
//
// A layer of the network is one LayerWork; a repeated block is one for each repetition.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/model/layer_work.hpp"
#include "sim/model/transformer_work.hpp"

namespace bubblesim::model {
namespace {

using Kind = ConvolutionLayer::Kind;

constexpr std::uint64_t kMaxActivations = std::uint64_t{1} << 50U;  // elements of a layer's output

// What flows between layers: a flat one is 1 x 1.
struct Image {
  std::uint64_t channels = 0;
  std::uint64_t side = 0;
  [[nodiscard]] std::uint64_t size() const { return channels * side * side; }
};

struct Window {
  std::uint64_t out = 0;
  std::uint64_t kernel = 1;
  std::uint64_t stride = 1;
  std::uint64_t padding = 0;
};

// Operators are added in forward order; each keeps its backward, which runs in reverse.
class Chain {
 public:
  Chain(std::string kind, const TrainingShape& shape, Pass pass, Image image)
      : out_(std::move(kind)),
        shape_(shape),
        training_(pass == Pass::kTraining),
        precision_(stored(shape.precision)),
        p_(bytes_of(precision_)),
        image_(image) {}

  [[nodiscard]] Image image() const { return image_; }
  // The next convolution reads what an earlier operator of the layer keeps already.
  void again_from(Image image) {
    image_ = image;
    kept_already_ = true;
  }

  void convolution(Window window) {
    const Image image = image_;
    const std::uint64_t area = window.kernel * window.kernel;
    const double read = elements();
    image_ = {window.out, (image.side + 2 * window.padding - window.kernel) / window.stride + 1};
    const double weights = static_cast<double>(window.out * image.channels * area);
    const std::uint64_t b = shape_.micro_batch;
    const std::uint64_t pixels = b * image_.side * image_.side;
    const double flops = 2.0 * weights * static_cast<double>(pixels);
    const double bytes = p_ * (read + weights + elements());
    const std::string name =
        "conv " + std::to_string(window.kernel) + "x" + std::to_string(window.kernel);
    out_.forward(implicit(name, {pixels, window.out, image.channels * area}, flops, bytes));
    out_.parameters(weights);
    if (!std::exchange(kept_already_, false)) keep(p_ * read);
    hold(p_ * (read + elements()));
    // In a strided convolution each input pixel meets only a part of the window.
    const std::uint64_t met = window.out * area;
    const std::uint64_t depth = std::max<std::uint64_t>(1, met / (window.stride * window.stride));
    const GemmShape data{b * image.side * image.side, image.channels, depth};
    const GemmShape filter{window.out, image.channels * area, pixels};
    const double stored_bytes =
        shape_.gradients == GradientStore::kAccumulateFp32 ? 2.0 * kFp32Bytes : p_;
    backward_.push_back({{implicit(name + " input-grad", data, flops, bytes)},
                         {implicit(name + " weight-grad", filter, flops,
                                   p_ * (read + elements()) + stored_bytes * weights)}});
  }
  void linear(std::uint64_t outputs) {
    const std::uint64_t inputs = image_.size();
    const std::uint64_t b = shape_.micro_batch;
    const double read = elements();
    image_ = {outputs, 1};
    out_.forward(gemm_kernel("linear gemm", {b, outputs, inputs}, shape_.precision));
    out_.parameters(static_cast<double>(inputs) * static_cast<double>(outputs));
    keep(p_ * read);
    hold(p_ * (read + elements()));
    backward_.push_back(
        {{gemm_kernel("linear gemm input-grad", {b, inputs, outputs}, shape_.precision)},
         {weight_kernel("linear gemm weight-grad", {outputs, inputs, b}, shape_.precision,
                        shape_.gradients)}});
  }
  /// Added within the product's kernel; its gradient is a sum of its own.
  void bias() {
    out_.parameters(static_cast<double>(image_.channels));
    backward_.push_back({{}, {pass("bias weight-grad", elements(), p_)}});
  }
  void batch_norm() {
    const double count = elements();
    out_.parameters(static_cast<double>(image_.channels));
    out_.parameters(static_cast<double>(image_.channels));
    // In training the statistics take a pass of their own; one kernel does both (cuDNN).
    out_.forward(
        pass("batchnorm", count, (training_ ? 3.0 : 2.0) * p_, KernelKind::kNormalisation));
    keep(p_ * count);
    // Reads gradient and input twice; gives the weights' gradients too.
    backward_.push_back(
        {{pass("batchnorm input-grad", count, 5.0 * p_, KernelKind::kNormalisation)}, {}});
  }
  /// In place: its output is what the next operator keeps.
  void relu() {
    const double count = elements();
    out_.forward(pass("relu", count, 2.0 * p_));
    backward_.push_back({{pass("relu input-grad", count, 3.0 * p_)}, {}});
  }
  void dropout() {
    if (!training_) return;
    const double count = elements();
    out_.forward(pass("dropout", count, 2.0 * p_ + kMaskByte));
    keep(kMaskByte * count);
    backward_.push_back({{pass("dropout input-grad", count, 2.0 * p_ + kMaskByte)}, {}});
  }
  void max_pool(Window window) {
    const double read = elements();
    image_.side = (image_.side + 2 * window.padding - window.kernel) / window.stride + 1;
    const double written = elements();
    KernelWork forward = pass("max pool", written, 0.0);
    forward.bytes = p_ * read + (p_ + kIndexBytes) * written;
    out_.forward(std::move(forward));
    keep(kIndexBytes * written);
    KernelWork back = pass("max pool input-grad", read, 0.0);
    back.bytes = p_ * read + (p_ + kIndexBytes) * written;
    backward_.push_back({{std::move(back)}, {}});
  }
  void average_pool() {
    const double read = elements();
    image_.side = 1;
    out_.forward(pass("average pool", read, p_));
    backward_.push_back({{pass("average pool input-grad", read, p_)}, {}});
  }
  void add() {
    const double count = elements();
    out_.forward(pass("shortcut add", count, 3.0 * p_));
    backward_.push_back({{pass("shortcut gradient add", count, 3.0 * p_)}, {}});
  }
  [[nodiscard]] LayerWork take(std::uint64_t input) {
    if (training_) {
      for (auto at = backward_.rbegin(); at != backward_.rend(); ++at) {
        for (WorkItem& item : at->input) out_.input_grad(std::move(item));
        for (WorkItem& item : at->weight) out_.weight_grad(std::move(item));
      }
    }
    LayerWork layer = out_.take();
    layer.output_bytes = p_ * elements();
    const auto read = static_cast<double>(shape_.micro_batch) * static_cast<double>(input);
    layer.working_bytes = (training_ ? 2.0 : 1.0) * p_ * std::max(read, elements());
    return layer;
  }

 private:
  struct Backward {
    std::vector<WorkItem> input;
    std::vector<WorkItem> weight;
  };
  [[nodiscard]] double elements() const {
    return static_cast<double>(shape_.micro_batch) * static_cast<double>(image_.size());
  }
  [[nodiscard]] KernelWork pass(std::string name, double count, double bytes_each,
                                KernelKind kind = KernelKind::kElementwise) const {
    return stream_kernel(std::move(name), kind, count, bytes_each, precision_);
  }
  [[nodiscard]] KernelWork implicit(std::string name, GemmShape gemm, double flops,
                                    double bytes) const {
    return {.name = std::move(name),
            .kind = KernelKind::kConvolution,
            .precision = shape_.precision,
            .flops = flops,
            .bytes = bytes,
            .gemm = gemm,
            .elements = static_cast<double>(gemm.m) * static_cast<double>(gemm.n)};
  }
  void keep(double bytes) {
    if (training_) out_.keep(bytes);
  }
  // From the input gradient to the weight gradient.
  void hold(double bytes) {
    if (training_) out_.layer().weight_grad_bytes += bytes;
  }

  LayerBuilder out_;
  const TrainingShape& shape_;
  bool training_;
  Precision precision_;
  double p_;
  Image image_;
  bool kept_already_ = false;
  std::vector<Backward> backward_;
};

void add_block(Chain& chain, const ConvolutionLayer& layer, std::uint32_t stride) {
  const Image image = chain.image();
  const std::uint64_t width = layer.out;
  const bool deep = layer.kind == Kind::kBottleneck;
  const std::uint64_t out = deep ? 4 * width : width;
  if (deep) {
    chain.convolution({width, 1, 1, 0});
    chain.batch_norm();
    chain.relu();
  }
  chain.convolution({width, 3, stride, 1});
  chain.batch_norm();
  chain.relu();
  chain.convolution(deep ? Window{out, 1, 1, 0} : Window{out, 3, 1, 1});
  chain.batch_norm();
  if (image.channels != out || stride != 1) {
    chain.again_from(image);
    chain.convolution({out, 1, stride, 0});
    chain.batch_norm();
  }
  chain.add();
  chain.relu();
}

void add_layer(Chain& chain, const ConvolutionLayer& layer, std::uint32_t repetition) {
  const Window window{layer.out, layer.kernel, layer.stride, layer.padding};
  switch (layer.kind) {
    case Kind::kConvolution:
      chain.convolution(window);
      break;
    case Kind::kMaxPool:
      return chain.max_pool(window);
    case Kind::kAveragePool:
      return chain.average_pool();
    case Kind::kLinear:
      chain.linear(layer.out);
      break;
    case Kind::kBottleneck:
    case Kind::kBasic:
      return add_block(chain, layer, repetition == 0 ? layer.stride : 1);
  }
  if (layer.bias) chain.bias();
  if (layer.norm) chain.batch_norm();
  if (layer.relu) chain.relu();
  if (layer.dropout) chain.dropout();
}

std::string name_of(const ConvolutionLayer& layer) {
  switch (layer.kind) {
    case Kind::kConvolution:
      return "convolution";
    case Kind::kMaxPool:
      return "max pool";
    case Kind::kAveragePool:
      return "average pool";
    case Kind::kLinear:
      return "linear";
    case Kind::kBottleneck:
      return "bottleneck";
    case Kind::kBasic:
      return "basic block";
  }
  return "layer";
}

// The shapes that the reader checks; a spec may come from elsewhere.
bool fits(const ConvolutionLayer& layer, const Image& image, std::uint64_t batch) {
  const bool windowed = layer.kind == Kind::kConvolution || layer.kind == Kind::kMaxPool;
  if (layer.stride == 0 || layer.kernel == 0 || image.size() == 0) return false;
  if (windowed && image.side + 2 * std::uint64_t{layer.padding} < layer.kernel) return false;
  const bool pool = layer.kind == Kind::kMaxPool || layer.kind == Kind::kAveragePool;
  const double widest = 4.0 * std::max<double>(layer.out, 1.0) *
                        static_cast<double>(image.side + 2 * std::uint64_t{layer.padding});
  return (pool || layer.out > 0) &&
         widest * static_cast<double>(image.side) * static_cast<double>(batch) <
             static_cast<double>(kMaxActivations);
}

// A loss over the last layer's outputs.
LayerWork loss_layer(const TrainingShape& shape, const Image& image) {
  const double logits = static_cast<double>(shape.micro_batch) * static_cast<double>(image.size());
  LayerBuilder out("loss");
  out.forward(
      stream_kernel("loss", KernelKind::kSoftmax, logits, 2.0 * kFp32Bytes, Precision::kFp32, 8.0));
  out.input_grad(stream_kernel("loss input-grad", KernelKind::kSoftmax, logits, 2.0 * kFp32Bytes,
                               Precision::kFp32, 2.0));
  out.keep(kFp32Bytes * logits);
  out.layer().output_bytes = kFp32Bytes * static_cast<double>(shape.micro_batch);
  return out.take();
}

// Recomputation of whole layers: each keeps its input only.
void recompute_all(LayerWork& layer, double input_bytes) {
  layer.recompute = layer.forward;
  layer.working_bytes += std::max(0.0, layer.activation_bytes - input_bytes);
  layer.activation_bytes = input_bytes;
}

}  // namespace

Result<ModelWork> convolutional_work(const ConvolutionalSpec& spec, const TrainingShape& shape,
                                     Pass pass) {
  ModelWork work;
  Image image{spec.channels, spec.image};
  using Key = std::tuple<std::size_t, bool, std::uint64_t, std::uint64_t>;
  std::map<Key, std::pair<std::uint32_t, Image>> known;  // layers alike share one LayerWork
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const ConvolutionLayer& layer = spec.layers[i];
    for (std::uint32_t n = 0; n < layer.repeat; ++n) {
      if (!fits(layer, image, shape.micro_batch)) {
        return fail("layer " + std::to_string(i) + " (" + name_of(layer) +
                    ") does not fit an image of " + std::to_string(image.side) +
                    ", or its output is too large");
      }
      const Key key{i, n == 0, image.channels, image.side};
      const auto [at, fresh] = known.try_emplace(key);
      if (fresh) {
        const std::uint64_t input = image.size();
        Chain chain(name_of(layer), shape, pass, image);
        add_layer(chain, layer, n);
        at->second = {static_cast<std::uint32_t>(work.kinds.size()), chain.image()};
        work.kinds.push_back(chain.take(input));
        if (pass == Pass::kTraining && shape.recompute == Recompute::kFull) {
          const double bytes = bytes_of(stored(shape.precision)) *
                               static_cast<double>(shape.micro_batch) *
                               static_cast<double>(input);
          recompute_all(work.kinds.back(), bytes);
        }
      }
      image = at->second.second;
      work.layers.push_back(at->second.first);
    }
  }
  if (pass == Pass::kTraining) {
    work.layers.push_back(static_cast<std::uint32_t>(work.kinds.size()));
    work.kinds.push_back(loss_layer(shape, image));
  }
  return work;
}

}  // namespace bubblesim::model
