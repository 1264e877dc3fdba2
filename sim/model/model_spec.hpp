// A neural network's sizes, immutable, read from configs/models/*.json (configs/models/README.md
// explains each key). No weights, no GPU, no split.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::model {

/// Experts in place of the feed-forward part of some blocks.
struct MixtureSpec {
  std::uint32_t experts = 0;
  std::uint32_t top_k = 0;            ///< experts for each token
  std::uint64_t expert_ffn = 0;       ///< inner width of one expert
  std::uint32_t shared_experts = 0;   ///< further ones, used by every token; same inner width
  std::uint32_t first_dense = 0;      ///< blocks at the start without experts
  std::uint32_t interval = 1;         ///< after them, every `interval`-th block has experts
};

enum class AttentionMask : std::uint8_t { kCausal, kBidirectional };  ///< decoder, encoder
enum class Positions : std::uint8_t { kLearned, kRotary };
enum class Norm : std::uint8_t { kLayer, kRms };
enum class NormPlace : std::uint8_t { kBefore, kAfter };  ///< of attention and feed-forward part

/// The layers after the last block.
enum class Head : std::uint8_t {
  kNone,
  kLanguageModel,  ///< logits over the vocabulary, of every token
  kPooler,         ///< dense layer and tanh on the first token of a sample
  kClassifier,     ///< pooler, then logits over `classes`
};

struct TransformerSpec {
  std::uint32_t layers = 0;
  std::uint64_t hidden = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;      ///< fewer than `heads`: groups of heads share keys and values
  std::uint64_t head_size = 0;     ///< usually hidden / heads
  std::uint64_t ffn = 0;           ///< inner width of the feed-forward part
  std::uint64_t vocabulary = 0;    ///< rows as published; 0: no embedding (a branch of a graph)
  std::uint64_t max_sequence = 0;  ///< in tokens; rows of learned positions
  std::uint32_t token_types = 0;   ///< rows of BERT's segment embedding; 0: none
  std::uint32_t classes = 0;       ///< Head::kClassifier
  AttentionMask mask = AttentionMask::kCausal;
  Positions positions = Positions::kLearned;
  Norm norm = Norm::kLayer;
  NormPlace norm_place = NormPlace::kBefore;
  Head head = Head::kLanguageModel;
  bool gated = false;              ///< SwiGLU (three matrices), else GELU (two)
  bool biases = true;              ///< of the linear layers
  bool tied_embeddings = true;     ///< the head's matrix is the embedding's
  bool embedding_norm = false;     ///< a norm after the embedding, as in BERT
  bool dropout = true;             ///< in training
  std::optional<MixtureSpec> mixture;
};

/// One layer of a convolutional network. `out`, `kernel`, `stride`, `padding` as in PyTorch.
struct ConvolutionLayer {
  enum class Kind : std::uint8_t {
    kConvolution,
    kMaxPool,
    kAveragePool,  ///< over the whole image
    kLinear,       ///< flattens its input
    kBottleneck,   ///< ResNet: 1x1 to `out`, 3x3 with stride, 1x1 to 4 x `out`, and a shortcut
    kBasic,        ///< ResNet: two 3x3 to `out`, and a shortcut
  };
  Kind kind = Kind::kConvolution;
  std::uint32_t out = 0;
  std::uint32_t kernel = 1;
  std::uint32_t stride = 1;
  std::uint32_t padding = 0;
  std::uint32_t repeat = 1;  ///< blocks: the first has the stride
  bool norm = false;         ///< batch normalisation after a convolution
  bool relu = false;
  bool bias = false;
  bool dropout = false;      ///< after a linear layer
};

struct ConvolutionalSpec {
  std::uint32_t channels = 3;
  std::uint32_t image = 224;  ///< height and width
  std::vector<ConvolutionLayer> layers;
};

/// One of several parallel chains of layers.
struct BranchSpec {
  enum class Kind : std::uint8_t { kTransformer, kFeedForward, kEmbeddingBag };
  std::string name;
  Kind kind = Kind::kFeedForward;
  std::uint32_t repeat = 1;       ///< the number of such branches, each with its own weights
  std::uint32_t layers = 0;       ///< linear layers with ReLU, or transformer blocks
  std::uint64_t inputs = 0;       ///< feed forward: width of the first layer's input
  std::uint64_t width = 0;        ///< of each layer; embedding bag: of a row
  std::uint64_t rows = 0;         ///< embedding bag
  std::uint32_t bag = 0;          ///< embedding bag: rows summed for a sample
  std::uint64_t sequence = 1;     ///< transformer: tokens
  std::uint32_t heads = 0;        ///< transformer
  std::uint64_t ffn = 0;          ///< transformer
};

/// Branches whose outputs are concatenated and read by linear layers with ReLU.
struct GraphSpec {
  std::vector<BranchSpec> branches;
  std::uint32_t join_layers = 0;  ///< after the concatenation
  std::uint64_t join_width = 0;
  std::uint64_t outputs = 1;      ///< of a last linear layer
};

struct ModelSpec {
  std::string name;
  std::variant<TransformerSpec, ConvolutionalSpec, GraphSpec> network;
  std::vector<std::string> published_as{};  ///< names on Hugging Face: "meta-llama/Llama-3.1-8B"
};

/// A GPT as in Megatron-LM's tables: learned positions, biases, tied embeddings, dropout, inner
/// width 4 x hidden, head size hidden / heads. Heads that do not divide hidden leave a head size of
/// 0, which the work functions report as a fault.
[[nodiscard]] ModelSpec gpt(std::uint64_t hidden, std::uint32_t layers, std::uint32_t heads,
                            std::uint64_t vocabulary, std::uint64_t sequence);

/// The expected number of one rank's experts that have a token, if experts are spread evenly over
/// `ranks` and each of `tokens` goes to `top_k` different experts at random:
///   experts / ranks x (1 - (1 - top_k / experts)^tokens).
[[nodiscard]] double busy_experts(const MixtureSpec& mixture, double ranks, double tokens);

/// Fault: the transformer has learned positions for fewer tokens.
[[nodiscard]] Result<void> check_sequence(const ModelSpec& model, std::uint64_t tokens);

/// Whether a block has experts.
[[nodiscard]] bool has_experts(const TransformerSpec& spec, std::uint32_t layer);

/// The largest width, sequence or vocabulary (kMaxWidth) and the most layers or heads (kMaxCount)
/// that a file may state. Both are beyond any network: they catch typos, and keep sums of products
/// within 64 bits.
inline constexpr std::uint32_t kMaxWidth = 1U << 22U;
inline constexpr std::uint32_t kMaxCount = 1U << 14U;

/// The parameter count as printed by the model's authors, e.g. 1.7e9 with last digit 1e8.
struct PublishedCount {
  double value = 0;
  double last_digit = 0;  ///< the unit of the last digit printed
  std::string source;
};

/// A model file as read.
struct ModelFile {
  std::string id;  ///< file name without ".json": "bert-base"
  std::string path;
  std::string source;  ///< of its sizes
  ModelSpec spec;
  std::optional<PublishedCount> published;
};

[[nodiscard]] CheckedResult<ModelFile> read_model_file(const std::string& path);

/// `label` stands for the file in messages, and is the id.
[[nodiscard]] CheckedResult<ModelFile> parse_model(std::string_view text, std::string label);

/// All "*.json" of a folder, ordered by id.
[[nodiscard]] CheckedResult<std::vector<ModelFile>> read_model_folder(const std::string& folder);

/// `name` is a path (it has a "/" or ends in ".json"), else the id of a file in `folder`; an
/// unknown one is a fault that names the nearest.
[[nodiscard]] CheckedResult<ModelSpec> find_model(std::string_view name,
                                                  const std::string& folder);

/// Reads everything of a file but its id and path; faults go to the reader's Errors.
[[nodiscard]] ModelFile read_model(ObjectReader& root);

}  // namespace bubblesim::model
