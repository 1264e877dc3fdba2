#include "sim/model/decoder_work.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/model/transformer_work.hpp"

namespace bubblesim::model {
namespace {

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

  [[nodiscard]] ModelWork work() const;
  [[nodiscard]] std::vector<KernelWork> attention_kernels() const;

 private:
  void attention_part(std::vector<WorkItem>& items) const;
  void add_and_norm(std::vector<WorkItem>& items) const;
  [[nodiscard]] LayerWork block(FeedForward part) const;
  [[nodiscard]] LayerWork head() const;
  [[nodiscard]] KernelWork pass(std::string name, double elements, double bytes_each) const {
    return stream_kernel(std::move(name), KernelKind::kElementwise, elements, bytes_each,
                         stored(shape_.run.precision));
  }

  const TransformerShape& shape_;
  const IterationSums& sums_;
  std::uint64_t rows_;  // of logits
};

void Decoder::attention_part(std::vector<WorkItem>& items) const {
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

std::vector<KernelWork> Decoder::attention_kernels() const {
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

// One kernel for RMS norms (vLLM, fused_add_rms_norm): reads both, writes the sum and its norm.
void Decoder::add_and_norm(std::vector<WorkItem>& items) const {
  const double p = shape_.element;
  if (shape_.spec->norm == Norm::kRms) {
    items.push_back(stream_kernel("add rmsnorm", KernelKind::kNormalisation, shape_.stream(),
                                  4.0 * p, stored(shape_.run.precision), 6.0));
    return;
  }
  items.push_back(pass("residual add", shape_.stream(), 3.0 * p));
  items.push_back(norm_forward(shape_));
}

LayerWork Decoder::block(FeedForward part) const {
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

LayerWork Decoder::head() const {
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

ModelWork Decoder::work() const {
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

}  // namespace

Result<ModelWork> decoder_work(const ModelSpec& model, const Split& split, Precision precision,
                               const DecoderBatch& batch) {
  const auto* spec = std::get_if<TransformerSpec>(&model.network);
  if (spec == nullptr) return fail(model.name + ": the model is no transformer");
  auto work = work_of(*spec, split, precision, batch);
  if (!work) return fail(model.name + ": " + work.error().message);
  return work;
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
