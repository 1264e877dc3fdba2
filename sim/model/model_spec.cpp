#include "sim/model/model_spec.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/base/input_file.hpp"

namespace bubblesim::model {

ModelSpec gpt(std::uint64_t hidden, std::uint32_t layers, std::uint32_t heads,
              std::uint64_t vocabulary, std::uint64_t sequence) {
  TransformerSpec spec;
  spec.hidden = hidden;
  spec.layers = layers;
  spec.heads = heads;
  spec.kv_heads = heads;
  spec.head_size = heads > 0 && hidden % heads == 0 ? hidden / heads : 0;
  spec.ffn = 4 * hidden;
  spec.vocabulary = vocabulary;
  spec.max_sequence = sequence;
  return ModelSpec{"gpt h" + std::to_string(hidden) + " l" + std::to_string(layers), spec};
}

double busy_experts(const MixtureSpec& mixture, double ranks, double tokens) {
  const double idle = std::pow(1.0 - static_cast<double>(mixture.top_k) / mixture.experts, tokens);
  return mixture.experts / ranks * (1 - idle);
}

Result<void> check_sequence(const ModelSpec& model, std::uint64_t tokens) {
  const auto* spec = std::get_if<TransformerSpec>(&model.network);
  if (spec == nullptr || spec->positions != Positions::kLearned || tokens <= spec->max_sequence) {
    return {};
  }
  return fail("found " + std::to_string(tokens) + " tokens; " + model.name +
              " has positions for " + std::to_string(spec->max_sequence));
}

bool has_experts(const TransformerSpec& spec, std::uint32_t layer) {
  if (!spec.mixture || layer < spec.mixture->first_dense) return false;
  const std::uint32_t interval = std::max(spec.mixture->interval, 1U);
  return (layer - spec.mixture->first_dense) % interval == interval - 1;
}

CheckedResult<ModelFile> read_model_file(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(ModelFile file, read_whole_file(path, read_model));
  file.id = data_file_id(path);
  file.path = path;
  return file;
}

CheckedResult<ModelFile> parse_model(std::string_view text, std::string label) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(text, label));
  BUBBLESIM_ASSIGN_OR_RETURN(ModelFile file, read_whole(document, read_model));
  file.id = std::move(label);
  return file;
}

CheckedResult<std::vector<ModelFile>> read_model_folder(const std::string& folder) {
  return read_data_folder(folder, "model", read_model_file);
}

CheckedResult<ModelSpec> find_model(std::string_view name, const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path, find_data_file(name, folder, "model"));
  BUBBLESIM_ASSIGN_OR_RETURN(ModelFile file, read_model_file(path));
  return std::move(file.spec);
}

namespace {

using std::string_view;

// Beyond any network, as kMaxWidth is.
constexpr std::uint64_t kMaxRows = std::uint64_t{1} << 40U;
constexpr std::uint32_t kMaxImage = 1U << 14U;
constexpr std::uint32_t kMaxKernel = 64;

enum class Activation : std::uint8_t { kGelu, kSwiglu };
enum class Family : std::uint8_t { kTransformer, kConvolutional, kGraph };

constexpr std::array<Choice<Family>, 3> kFamilies{{{"transformer", Family::kTransformer},
                                                   {"convolutional", Family::kConvolutional},
                                                   {"graph", Family::kGraph}}};
constexpr std::array<Choice<AttentionMask>, 2> kMasks{
    {{"causal", AttentionMask::kCausal}, {"bidirectional", AttentionMask::kBidirectional}}};
constexpr std::array<Choice<Positions>, 2> kPositions{
    {{"learned", Positions::kLearned}, {"rotary", Positions::kRotary}}};
constexpr std::array<Choice<Norm>, 2> kNorms{{{"layer", Norm::kLayer}, {"rms", Norm::kRms}}};
constexpr std::array<Choice<NormPlace>, 2> kPlaces{
    {{"before", NormPlace::kBefore}, {"after", NormPlace::kAfter}}};
constexpr std::array<Choice<Activation>, 2> kActivations{
    {{"gelu", Activation::kGelu}, {"swiglu", Activation::kSwiglu}}};
constexpr std::array<Choice<Head>, 4> kHeads{{{"none", Head::kNone},
                                              {"language_model", Head::kLanguageModel},
                                              {"pooler", Head::kPooler},
                                              {"classifier", Head::kClassifier}}};
using LayerKind = ConvolutionLayer::Kind;
constexpr std::array<Choice<LayerKind>, 6> kLayerKinds{{{"convolution", LayerKind::kConvolution},
                                                        {"max_pool", LayerKind::kMaxPool},
                                                        {"average_pool", LayerKind::kAveragePool},
                                                        {"linear", LayerKind::kLinear},
                                                        {"bottleneck", LayerKind::kBottleneck},
                                                        {"basic", LayerKind::kBasic}}};
constexpr std::array<Choice<BranchSpec::Kind>, 3> kBranchKinds{
    {{"transformer", BranchSpec::Kind::kTransformer},
     {"feed_forward", BranchSpec::Kind::kFeedForward},
     {"embedding_bag", BranchSpec::Kind::kEmbeddingBag}}};

std::uint64_t width(ObjectReader& at, string_view key) {
  return at.integer<std::uint64_t>(key, {1, kMaxWidth});
}

std::uint32_t count(ObjectReader& at, string_view key, std::uint32_t fallback) {
  return at.integer<std::uint32_t>(key, {0, kMaxCount}, fallback);
}

std::optional<MixtureSpec> read_mixture(ObjectReader& root, std::uint32_t layers) {
  ObjectReader at = root.child("mixture", Presence::kOptional);
  if (!at.present()) return std::nullopt;
  MixtureSpec spec;
  spec.experts = at.integer<std::uint32_t>("experts", {1, kMaxCount});
  spec.top_k = at.integer<std::uint32_t>("top_k", {1, kMaxCount});
  spec.expert_ffn = width(at, "expert_ffn");
  spec.shared_experts = count(at, "shared_experts", 0);
  spec.first_dense = count(at, "first_dense", 0);
  spec.interval = at.integer<std::uint32_t>("every", {1, kMaxCount}, 1);
  if (spec.top_k > spec.experts) {
    at.fault("top_k", "found " + std::to_string(spec.top_k) + "; expected at most " +
                          std::to_string(spec.experts) + ", the number of experts");
  }
  if (spec.first_dense >= layers) {
    at.fault("first_dense", "found " + std::to_string(spec.first_dense) +
                                "; expected less than the " + std::to_string(layers) + " layers");
  }
  return spec;
}

void read_attention(ObjectReader& at, TransformerSpec& spec) {
  spec.heads = at.integer<std::uint32_t>("heads", {1, kMaxCount});
  spec.kv_heads = at.integer<std::uint32_t>("kv_heads", {1, kMaxCount}, spec.heads);
  const bool divides = spec.hidden % spec.heads == 0;
  if (!divides && !at.has("head_size")) {
    at.fault("heads", "found " + std::to_string(spec.heads) + ", which does not divide hidden (" +
                          std::to_string(spec.hidden) + "); expected a divisor, or a head_size");
  }
  spec.head_size =
      at.integer<std::uint64_t>("head_size", {1, kMaxWidth}, spec.hidden / spec.heads);
  if (spec.heads % spec.kv_heads != 0) {
    at.fault("kv_heads", "found " + std::to_string(spec.kv_heads) + "; expected a divisor of " +
                             std::to_string(spec.heads) + " heads");
  }
}

void read_head(ObjectReader& at, TransformerSpec& spec) {
  spec.head = at.choice("head", kHeads, Head::kLanguageModel);
  const bool classifies = spec.head == Head::kClassifier;
  if (classifies) spec.classes = at.integer<std::uint32_t>("classes", {1, kMaxCount});
  spec.tied_embeddings = at.flag("tied_embeddings", true);
}

TransformerSpec read_transformer(ObjectReader& at) {
  TransformerSpec spec;
  spec.layers = at.integer<std::uint32_t>("layers", {1, kMaxCount});
  spec.hidden = width(at, "hidden");
  read_attention(at, spec);
  spec.ffn = at.integer<std::uint64_t>("ffn", {1, kMaxWidth}, 4 * spec.hidden);
  spec.vocabulary = at.integer<std::uint64_t>("vocabulary", {1, kMaxWidth});
  spec.max_sequence = at.integer<std::uint64_t>("max_sequence", {1, kMaxWidth});
  spec.token_types = count(at, "token_types", 0);
  spec.mask = at.choice("attention", kMasks, AttentionMask::kCausal);
  spec.positions = at.choice("positions", kPositions);
  spec.norm = at.choice("norm", kNorms);
  spec.norm_place = at.choice("norm_place", kPlaces, NormPlace::kBefore);
  spec.gated = at.choice("activation", kActivations) == Activation::kSwiglu;
  spec.biases = at.flag("biases");
  spec.embedding_norm = at.flag("embedding_norm", false);
  spec.dropout = at.flag("dropout");
  read_head(at, spec);
  spec.mixture = read_mixture(at, spec.layers);
  if (spec.mixture && spec.biases) {
    at.fault("biases", "found true beside \"mixture\"; experts have no biases here");
  }
  return spec;
}

ConvolutionLayer read_layer(ObjectReader& at) {
  ConvolutionLayer layer;
  layer.kind = at.choice("kind", kLayerKinds);
  const bool windowed = layer.kind == LayerKind::kConvolution || layer.kind == LayerKind::kMaxPool;
  const bool block = layer.kind == LayerKind::kBottleneck || layer.kind == LayerKind::kBasic;
  const bool pool = layer.kind == LayerKind::kMaxPool || layer.kind == LayerKind::kAveragePool;
  if (!pool) layer.out = at.integer<std::uint32_t>("out", {1, kMaxImage});
  if (windowed) {
    layer.kernel = at.integer<std::uint32_t>("kernel", {1, kMaxKernel});
    layer.padding = at.integer<std::uint32_t>("padding", {0, kMaxKernel}, 0);
  }
  if (windowed || block) layer.stride = at.integer<std::uint32_t>("stride", {1, kMaxKernel}, 1);
  if (layer.kind != LayerKind::kAveragePool) {
    layer.repeat = at.integer<std::uint32_t>("repeat", {1, kMaxCount}, 1);
  }
  if (pool || block) return layer;
  layer.relu = at.flag("relu", false);
  layer.bias = at.flag("bias", false);
  if (layer.kind == LayerKind::kConvolution) layer.norm = at.flag("norm", false);
  if (layer.kind == LayerKind::kLinear) layer.dropout = at.flag("dropout", false);
  return layer;
}

// Follows the image through the layers; a window larger than what it reads is a fault.
void check_windows(std::vector<ObjectReader>& readers, const ConvolutionalSpec& spec) {
  std::uint64_t image = spec.image;
  bool flat = false;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    const ConvolutionLayer& layer = spec.layers[i];
    const bool flattens = layer.kind == LayerKind::kLinear || layer.kind == LayerKind::kAveragePool;
    if (flat && !flattens) {
      readers[i].fault("kind", "an image is read here, but an earlier layer made it flat");
      return;
    }
    flat = flat || layer.kind == LayerKind::kLinear;
    if (flattens) continue;
    const bool block = layer.kind == LayerKind::kBottleneck || layer.kind == LayerKind::kBasic;
    const std::uint64_t window = block ? 1 : layer.kernel;
    for (std::uint32_t n = 0; n < layer.repeat; ++n) {
      const std::uint64_t padded = image + 2 * std::uint64_t{layer.padding};
      if (padded < window) {
        readers[i].fault("kernel", "found a window of " + std::to_string(window) +
                                       " on an image of " + std::to_string(padded) +
                                       " with padding; expected at most that");
        return;
      }
      const std::uint64_t stride = block && n > 0 ? 1 : layer.stride;
      image = (padded - window) / stride + 1;
    }
  }
}

ConvolutionalSpec read_convolutional(ObjectReader& at) {
  ConvolutionalSpec spec;
  spec.channels = at.integer<std::uint32_t>("channels", {1, kMaxImage}, 3);
  spec.image = at.integer<std::uint32_t>("image", {1, kMaxImage});
  std::vector<ObjectReader> layers = at.children("layers");
  for (ObjectReader& layer : layers) spec.layers.push_back(read_layer(layer));
  if (layers.empty()) at.fault("layers", "found no layer; expected at least one");
  check_windows(layers, spec);
  return spec;
}

BranchSpec read_branch(ObjectReader& at) {
  BranchSpec spec;
  spec.name = at.text("name");
  spec.kind = at.choice("kind", kBranchKinds);
  spec.repeat = at.integer<std::uint32_t>("repeat", {1, kMaxCount}, 1);
  spec.width = width(at, "width");
  if (spec.kind == BranchSpec::Kind::kEmbeddingBag) {
    spec.rows = at.integer<std::uint64_t>("rows", {1, kMaxRows});
    spec.bag = at.integer<std::uint32_t>("bag", {1, kMaxCount});
    return spec;
  }
  spec.layers = at.integer<std::uint32_t>("layers", {1, kMaxCount});
  if (spec.kind == BranchSpec::Kind::kFeedForward) {
    spec.inputs = width(at, "inputs");
    return spec;
  }
  spec.sequence = width(at, "sequence");
  spec.heads = at.integer<std::uint32_t>("heads", {1, kMaxCount});
  spec.ffn = at.integer<std::uint64_t>("ffn", {1, kMaxWidth}, 4 * spec.width);
  if (spec.width % spec.heads != 0) {
    at.fault("heads", "found " + std::to_string(spec.heads) + "; expected a divisor of width (" +
                          std::to_string(spec.width) + ")");
  }
  return spec;
}

GraphSpec read_graph(ObjectReader& at) {
  GraphSpec spec;
  std::vector<ObjectReader> branches = at.children("branches");
  for (ObjectReader& branch : branches) spec.branches.push_back(read_branch(branch));
  if (branches.empty()) at.fault("branches", "found no branch; expected at least one");
  spec.join_layers = count(at, "join_layers", 0);
  if (spec.join_layers > 0) spec.join_width = width(at, "join_width");
  spec.outputs = at.integer<std::uint64_t>("outputs", {1, kMaxWidth}, 1);
  return spec;
}

std::optional<PublishedCount> read_published(ObjectReader& root) {
  ObjectReader at = root.child("published_parameters", Presence::kOptional);
  if (!at.present()) return std::nullopt;
  return PublishedCount{.value = at.number("value", {1.0, 1e15}),
                        .last_digit = at.number("last_digit", {1.0, 1e15}, 1.0),
                        .source = at.text("source")};
}

}  // namespace

ModelFile read_model(ObjectReader& root) {
  ModelFile file;
  file.spec.name = root.text("name");
  file.source = root.text("source");
  if (file.source.empty() && root.has("source")) {
    root.fault("source", "found no text; expected where the sizes come from");
  }
  switch (root.choice("family", kFamilies)) {
    case Family::kTransformer:
      file.spec.network = read_transformer(root);
      break;
    case Family::kConvolutional:
      file.spec.network = read_convolutional(root);
      break;
    case Family::kGraph:
      file.spec.network = read_graph(root);
      break;
  }
  file.published = read_published(root);
  file.spec.published_as = root.texts("published_as", Presence::kOptional);
  root.finish();
  return file;
}

}  // namespace bubblesim::model
