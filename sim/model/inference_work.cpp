#include "sim/model/inference_work.hpp"

#include <algorithm>
#include <string>

#include "sim/model/decoder_work.hpp"
#include "sim/model/network_work.hpp"

namespace bubblesim::model {

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

}  // namespace bubblesim::model
