#include "sim/model/inference_work.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/model/transformer_work.hpp"

namespace bubblesim::model {
namespace {

// ---- A decoder's iteration.

/// What a new token sees of the other new tokens of its sequence.
enum class NewTokenMask : std::uint8_t {
  kCausal,  ///< those before it
  kTree,    ///< its ancestors; the kernel computes all pairs and masks (SpecInfer, section 4.2)
};

/// One iteration's batch.
struct DecoderBatch {
  std::vector<SequenceState> sequences;
  Logits logits = Logits::kLastToken;
  NewTokenMask mask = NewTokenMask::kCausal;
};

constexpr std::uint64_t kMaxContext = std::uint64_t{1} << 32U;
constexpr std::size_t kMaxSequences = std::size_t{1} << 20U;

IterationSums sum_up(const DecoderBatch& batch) {
  IterationSums sums;
  for (const SequenceState& sequence : batch.sequences) {
    AttentionSums& group = sequence.new_tokens == 1 ? sums.singles : sums.prompts;
    group.add(sequence);
    const auto fresh = static_cast<double>(sequence.new_tokens);
    if (batch.mask == NewTokenMask::kTree) group.pairs += fresh * (fresh - 1.0) / 2.0;
    sums.tokens += sequence.new_tokens;
  }
  sums.rows = batch.logits == Logits::kEveryToken ? sums.tokens : batch.sequences.size();
  return sums;
}

Result<void> check_decoder(const TransformerSpec& spec) {
  if (spec.mask == AttentionMask::kCausal && spec.head == Head::kLanguageModel) return {};
  return fail("the model is no decoder with a language model's head; its requests are one pass");
}

Result<IterationSums> check(const TransformerSpec& spec, const DecoderBatch& batch) {
  BUBBLESIM_RETURN_IF_ERROR(check_decoder(spec));
  if (batch.sequences.empty()) return fail("no sequence in the iteration; expected at least 1");
  if (batch.sequences.size() > kMaxSequences) return fail("more than 2^20 sequences at once");
  for (const SequenceState& sequence : batch.sequences) {
    if (sequence.new_tokens == 0) return fail("a sequence without new tokens; expected at least 1");
    const bool learned = spec.positions == Positions::kLearned;
    const std::uint64_t most = learned ? spec.max_sequence : kMaxContext;
    if (sequence.context > most || sequence.new_tokens > most - sequence.context) {
      return fail("a sequence of " + std::to_string(sequence.context) + " cached and " +
                  std::to_string(sequence.new_tokens) + " new tokens; expected at most " +
                  std::to_string(most));
    }
  }
  return sum_up(batch);
}

// Heads that share keys are rows of one block where each has a single query (FlashAttention's
// seqlenq_ngroups_swapped); in prompts each has blocks of its own.
KernelWork attention(const TransformerShape& shape, std::string name,
                     const AttentionSums& group) {
  const bool single = group.queries <= group.sequences;
  const std::uint64_t sharing = std::max<std::uint64_t>(1, shape.heads / shape.kv_heads);
  const std::uint64_t packed = single ? sharing : 1;
  const auto heads = static_cast<double>(shape.heads);
  const auto head = static_cast<double>(shape.spec->head_size);
  const auto whole = [&](double sum) { return static_cast<std::uint64_t>(sum / group.sequences); };
  KernelWork work;
  work.name = std::move(name);
  work.kind = KernelKind::kAttention;
  work.precision = stored(shape.run.precision);
  work.gemm = {whole(group.queries) * packed, whole(group.keys), shape.spec->head_size,
               static_cast<std::uint64_t>(group.sequences) * shape.heads / packed};
  work.flops = 4.0 * group.pairs * heads * head;
  work.bytes = shape.element * (2.0 * group.queries * static_cast<double>(shape.query_columns) +
                                2.0 * group.keys * static_cast<double>(shape.kv_columns));
  work.elements = group.queries * static_cast<double>(shape.query_columns);
  return work;
}

class Decoder {
 public:
  Decoder(const TransformerShape& shape, const IterationSums& sums)
      : shape_(shape), sums_(sums), rows_(sums.rows) {}

  [[nodiscard]] ModelWork work() const {
    ModelWork out;
    LayerWork embedding = embedding_layer(shape_);
    embedding.forward.push_back(norm_forward(shape_));  // the first block's
    out.kinds.push_back(std::move(embedding));
    out.layers.push_back(0);
    std::uint32_t dense = 0;
    std::uint32_t experts = 0;
    for (std::uint32_t layer = 0; layer < shape_.spec->layers; ++layer) {
      const bool mixed = has_experts(*shape_.spec, layer);
      std::uint32_t& kind = mixed ? experts : dense;
      if (kind == 0) {
        kind = static_cast<std::uint32_t>(out.kinds.size());
        out.kinds.push_back(block(mixed ? FeedForward::kExperts : FeedForward::kDense));
      }
      out.layers.push_back(kind);
    }
    out.layers.push_back(static_cast<std::uint32_t>(out.kinds.size()));
    out.kinds.push_back(head());
    return out;
  }
  [[nodiscard]] std::vector<KernelWork> attention_kernels() const {
    std::vector<KernelWork> kernels;
    if (sums_.prompts.sequences > 0) {
      kernels.push_back(attention(shape_, "prompt attention", sums_.prompts));
    }
    if (sums_.singles.sequences > 0) {
      kernels.push_back(attention(shape_, "decode attention", sums_.singles));
      if (sums_.singles.longest <= 1 && sums_.prompts.longest > 1) {
        kernels.back().prompt_queries = static_cast<std::uint64_t>(sums_.prompts.longest);
      }
    }
    return kernels;
  }

 private:
  void attention_part(std::vector<WorkItem>& items) const {
    const Precision precision = shape_.run.precision;
    const std::uint64_t wide = shape_.query_columns + 2 * shape_.kv_columns;
    const auto tokens = static_cast<double>(shape_.tokens);
    const double p = shape_.element;
    items.push_back(gemm_kernel("qkv gemm", {shape_.tokens, wide, shape_.hidden()}, precision));
    if (shape_.spec->positions == Positions::kRotary) {
      const auto turned = static_cast<double>(shape_.query_columns + shape_.kv_columns);
      items.push_back(pass("rotary", tokens * turned, 2.0 * p));
    }
    const auto cached = 2.0 * static_cast<double>(shape_.kv_columns);
    items.push_back(pass("kv cache write", tokens * cached, 2.0 * p));
    for (KernelWork& kernel : attention_kernels()) items.push_back(std::move(kernel));
    items.push_back(gemm_kernel("attention output gemm",
                                {shape_.tokens, shape_.hidden(), shape_.query_columns}, precision));
    reduce_tokens(shape_, items);
  }
  /// One kernel for RMS norms (vLLM, fused_add_rms_norm): reads both, writes the sum and its norm.
  void add_and_norm(std::vector<WorkItem>& items) const {
    const double p = shape_.element;
    if (shape_.spec->norm == Norm::kRms) {
      items.push_back(stream_kernel("add rmsnorm", KernelKind::kNormalisation, shape_.stream(),
                                    4.0 * p, stored(shape_.run.precision), 6.0));
      return;
    }
    items.push_back(pass("residual add", shape_.stream(), 3.0 * p));
    items.push_back(norm_forward(shape_));
  }
  [[nodiscard]] LayerWork block(FeedForward part) const {
    LayerWork layer = block_layer(shape_, part);
    layer.forward.clear();
    attention_part(layer.forward);
    add_and_norm(layer.forward);
    if (part == FeedForward::kExperts) {
      experts_forward(shape_, layer.forward);
    } else {
      dense_forward(shape_, shape_.ffn, layer.forward);
    }
    add_and_norm(layer.forward);  // the next block's first norm, or the head's
    // Gathered tokens, and what comes of them.
    layer.working_bytes += 2.0 * shape_.element * shape_.gathered_stream();
    return layer;
  }
  [[nodiscard]] LayerWork head() const {
    LayerWork layer = head_layer(shape_);
    layer.forward.clear();
    const double p = shape_.element;
    const auto rows = static_cast<double>(rows_);
    const double local = rows * static_cast<double>(shape_.vocabulary);
    const double logits = local * shape_.split.tensor;
    const double hidden = static_cast<double>(shape_.hidden());
    if (rows_ < shape_.tokens) {
      layer.forward.push_back(pass("select rows", rows * hidden, 2.0 * p));
    }
    layer.forward.push_back(gemm_kernel("logits gemm", {rows_, shape_.vocabulary, shape_.hidden()},
                                        stored(shape_.run.precision)));
    if (shape_.splits_tensor()) {
      layer.forward.push_back(
          exchange("logits all-gather", ParallelAxis::kTensor, Exchange::kAllGather, logits * p));
    }
    layer.forward.push_back(stream_kernel("sampling", KernelKind::kSoftmax, logits, p + kFp32Bytes,
                                          Precision::kFp32, 8.0));
    layer.working_bytes = logits * (p + kFp32Bytes);
    layer.output_bytes = 8.0 * rows;  // token numbers
    return layer;
  }
  [[nodiscard]] KernelWork pass(std::string name, double elements, double bytes_each) const {
    return stream_kernel(std::move(name), KernelKind::kElementwise, elements, bytes_each,
                         stored(shape_.run.precision));
  }

  const TransformerShape& shape_;
  const IterationSums& sums_;
  std::uint64_t rows_;  // of logits
};

Result<TransformerShape> shape_of(const TransformerSpec& spec, const Split& split,
                                  Precision precision, const IterationSums& sums) {
  if (split.context != 1) return fail("context parallel inference; expected a context size of 1");
  Split used = split;
  used.sequence_parallel = false;
  TrainingShape run;
  run.sequence = sums.tokens;
  run.precision = precision;
  run.attention = AttentionKernels::kFlash;
  BUBBLESIM_ASSIGN_OR_RETURN(TransformerShape shape,
                             transformer_shape(spec, used, run, Pass::kRequest));
  if (split.expert > 1) shape.gathered_tokens = sums.group_tokens;
  return shape;
}

Result<ModelWork> work_of(const TransformerSpec& spec, const Split& split, Precision precision,
                          const IterationSums& sums) {
  BUBBLESIM_ASSIGN_OR_RETURN(const TransformerShape shape,
                             shape_of(spec, split, precision, sums));
  return Decoder(shape, sums).work();
}

Result<ModelWork> work_of(const TransformerSpec& spec, const Split& split, Precision precision,
                          const DecoderBatch& batch) {
  BUBBLESIM_ASSIGN_OR_RETURN(const IterationSums sums, check(spec, batch));
  return work_of(spec, split, precision, sums);
}

Result<ModelWork> checked_work_of(const TransformerSpec& spec, const Split& split,
                                  Precision precision, const IterationSums& sums) {
  BUBBLESIM_RETURN_IF_ERROR(check_decoder(spec));
  if (sums.tokens == 0 || sums.rows == 0) return fail("an iteration without tokens or logits");
  return work_of(spec, split, precision, sums);
}

Result<ModelWork> decoder_work(const ModelSpec& model, const Split& split, Precision precision,
                               const DecoderBatch& batch) {
  const auto* spec = std::get_if<TransformerSpec>(&model.network);
  if (spec == nullptr) return fail(model.name + ": the model is no transformer");
  auto work = work_of(*spec, split, precision, batch);
  if (!work) return fail(model.name + ": " + work.error().message);
  return work;
}

}  // namespace

Result<ModelWork> iteration_work(const ModelSpec& model, const Split& split, Precision precision,
                                 const std::vector<SequenceState>& sequences, Logits logits) {
  return decoder_work(model, split, precision,
                      DecoderBatch{sequences, logits, NewTokenMask::kCausal});
}

void AttentionSums::add(const SequenceState& sequence) {
  const auto fresh = static_cast<double>(sequence.new_tokens);
  const auto cached = static_cast<double>(sequence.context);
  sequences += 1.0;
  queries += fresh;
  longest = std::max(longest, fresh);
  keys += cached + fresh;
  pairs += fresh * cached + fresh * (fresh + 1.0) / 2.0;
}

Result<ModelWork> prefill_work(const ModelSpec& model, const Split& split, Precision precision,
                               std::uint32_t sequences, std::uint64_t tokens_each,
                               std::uint64_t context) {
  const std::vector<SequenceState> batch(sequences, SequenceState{tokens_each, context});
  return iteration_work(model, split, precision, batch);
}

Result<ModelWork> decode_work(const ModelSpec& model, const Split& split, Precision precision,
                              std::uint32_t sequences, std::uint64_t context) {
  return prefill_work(model, split, precision, sequences, 1, context);
}

Result<ModelWork> forward_work(const ModelSpec& model, const Split& split, Precision precision,
                               std::uint32_t batch, std::uint64_t sequence,
                               AttentionKernels attention) {
  TrainingShape shape;
  shape.micro_batch = batch;
  shape.sequence = sequence;
  shape.precision = precision;
  shape.attention = attention;
  return network_work(model, split, shape, Pass::kRequest);
}

Result<double> kv_cache_bytes(const ModelSpec& model, const Split& split, Precision precision,
                              double tokens) {
  const auto* spec = std::get_if<TransformerSpec>(&model.network);
  if (spec == nullptr) return fail(model.name + ": no transformer; it has no KV cache");
  BUBBLESIM_RETURN_IF_ERROR(check_split(*spec, split));
  if (!(tokens >= 0.0)) return fail("KV cache of a negative number of tokens");
  const double local = static_cast<double>(spec->kv_heads / split.tensor) *
                       static_cast<double>(spec->head_size);
  return 2.0 * spec->layers * local * bytes_of(precision) * tokens;
}

namespace {

constexpr std::uint64_t kMaxTreeTokens = 65536;

}  // namespace

TokenTree chain(std::uint32_t depth) { return TokenTree{std::vector<std::uint32_t>(depth, 1)}; }

Result<std::uint64_t> token_count(const TokenTree& tree) {
  if (tree.expansion.empty()) return fail("a token tree without levels; expected at least 1");
  std::uint64_t level = 1;
  std::uint64_t tokens = 0;
  for (const std::uint32_t children : tree.expansion) {
    if (children == 0) return fail("a level of a token tree has no children; expected at least 1");
    level *= children;
    tokens += level;
    if (tokens > kMaxTreeTokens) {
      return fail("a token tree of more than " + std::to_string(kMaxTreeTokens) + " tokens");
    }
  }
  return tokens;
}

Result<ModelWork> verify_work(const ModelSpec& large, const Split& split, Precision precision,
                              std::uint32_t sequences, std::uint64_t context,
                              const TokenTree& tree) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::uint64_t tokens, token_count(tree));
  DecoderBatch batch;
  batch.sequences.assign(sequences, SequenceState{tokens + 1, context});
  batch.logits = Logits::kEveryToken;
  batch.mask = NewTokenMask::kTree;
  return decoder_work(large, split, precision, batch);
}

Result<SpeculationWork> speculation_work(const ModelSpec& large, const ModelSpec& draft,
                                         const SpeculationShape& shape, const TokenTree& tree) {
  SpeculationWork out;
  BUBBLESIM_ASSIGN_OR_RETURN(out.verify,
                             verify_work(large, shape.split, shape.precision, shape.sequences,
                                         shape.context, tree));
  std::uint64_t parents = 1;
  std::uint64_t cached = shape.context;
  for (const std::uint32_t children : tree.expansion) {
    DecoderBatch batch;
    batch.sequences.assign(shape.sequences, SequenceState{parents, cached});
    batch.logits = Logits::kEveryToken;
    batch.mask = NewTokenMask::kTree;
    BUBBLESIM_ASSIGN_OR_RETURN(
        ModelWork step, decoder_work(draft, shape.draft_split, shape.precision, batch));
    out.draft.push_back(std::move(step));
    cached += parents;
    parents *= children;
  }
  return out;
}

Result<double> expected_accepted(double acceptance_rate, const TokenTree& tree) {
  if (!(acceptance_rate >= 0.0 && acceptance_rate <= 1.0)) {
    return fail("acceptance rate " + std::to_string(acceptance_rate) + "; expected 0 to 1");
  }
  BUBBLESIM_RETURN_IF_ERROR(token_count(tree));
  double reached = 1.0;
  double expected = 1.0;
  for (const std::uint32_t children : tree.expansion) {
    reached *= 1.0 - std::pow(1.0 - acceptance_rate, children);
    expected += reached;
  }
  return expected;
}

Result<ModelWork> summed_iteration_work(const ModelSpec& model, const Split& split,
                                        Precision precision, const IterationSums& sums) {
  const auto* spec = std::get_if<TransformerSpec>(&model.network);
  if (spec == nullptr) return fail(model.name + ": the model is no transformer");
  auto work = checked_work_of(*spec, split, precision, sums);
  if (!work) return fail(model.name + ": " + work.error().message);
  return work;
}

std::vector<KernelWork> attention_work(const ModelSpec& model, const Split& split,
                                       Precision precision, const IterationSums& sums) {
  const auto shape =
      shape_of(std::get<TransformerSpec>(model.network), split, precision, sums);
  BUBBLESIM_CHECK(shape.has_value(), "an iteration that its model cannot run");
  return Decoder(*shape, sums).attention_kernels();
}

}  // namespace bubblesim::model
