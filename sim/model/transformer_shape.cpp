#include "sim/model/transformer_shape.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace bubblesim::model {
namespace {

constexpr std::uint64_t kVocabularyUnit = 128;
constexpr std::uint64_t kMaxTokens = std::uint64_t{1} << 40U;  // of a micro-batch
constexpr std::uint64_t kSearch = 1U << 16U;
constexpr std::uint32_t kMaxLayers = 1U << 16U;

// "tensor size 3 does not divide 16 heads; expected 2 or 4 (nearest that do)". `divides` holds
// for 1. Looks no further than kSearch away: sizes come from users.
template <class Divides>
tl::unexpected<Error> no_divisor(std::string_view axis, std::uint64_t found, std::string_view what,
                                 Divides divides, std::uint64_t limit) {
  const std::uint64_t start = std::min(found, limit + 1);
  std::uint64_t below = start - 1;
  while (below > 1 && start - below < kSearch && !divides(below)) --below;
  std::string nearest = std::to_string(below > 0 && divides(below) ? below : 1);
  std::uint64_t above = start + 1;
  while (above < limit && above - start < kSearch && !divides(above)) ++above;
  if (above <= limit && divides(above)) nearest += " or " + std::to_string(above);
  return fail(std::string(axis) + " size " + std::to_string(found) + " does not divide " +
              std::string(what) + "; expected " + nearest + " (nearest that do)");
}

std::string sizes(const TransformerSpec& spec) {
  std::string text = std::to_string(spec.heads) + " heads";
  if (spec.kv_heads != spec.heads) text += ", " + std::to_string(spec.kv_heads) + " kv heads";
  text += " and inner width " + std::to_string(spec.ffn);
  if (spec.mixture) text += ", experts of " + std::to_string(spec.mixture->expert_ffn);
  return text;
}

// A spec may come from a function, not from a checked file.
Result<Split> check_spec(const TransformerSpec& spec, const Split& split) {
  if (spec.layers > kMaxLayers) return fail("more than 65,536 layers");
  if (spec.hidden == 0 || spec.heads == 0 || spec.kv_heads == 0 || spec.ffn == 0) {
    return fail("a size of the model is 0; expected at least 1");
  }
  if (spec.head_size == 0) {
    return fail(std::to_string(spec.heads) + " heads do not divide a hidden size of " +
                std::to_string(spec.hidden));
  }
  return split;
}

Result<Split> check_sizes(const Split& split) {
  if (split.tensor == 0 || split.context == 0 || split.expert == 0) {
    return fail("a split has size 0; expected at least 1");
  }
  if (!(split.expert_load >= 1.0) || split.expert_load > 1e6) {
    return fail("expert_load " + std::to_string(split.expert_load) +
                "; expected 1 to 1e6, the busiest rank over the mean");
  }
  const double own = split.own_expert_load.value_or(split.expert_load);
  if (!(own >= 0.0) || own > split.expert_load) {
    return fail("own_expert_load " + std::to_string(own) + "; expected 0 to expert_load " +
                std::to_string(split.expert_load));
  }
  return split;
}

Result<Split> check_tokens(const Split& split, const TrainingShape& run) {
  const std::uint64_t s = run.sequence;
  if (run.micro_batch == 0 || s == 0) return fail("no sample or no token; expected at least 1");
  if (s > kMaxTokens / run.micro_batch) return fail("more than 2^40 tokens in a micro-batch");
  const auto by_context = [&](std::uint64_t c) { return s % c == 0; };
  if (!by_context(split.context)) {
    return no_divisor("context", split.context, "a sequence of " + std::to_string(s), by_context,
                      s);
  }
  const std::uint64_t local = s / split.context;
  const auto by_tensor = [&](std::uint64_t t) { return local % t == 0; };
  if (split.sequence_parallel && !by_tensor(split.tensor)) {
    return no_divisor("tensor (with sequence parallel)", split.tensor,
                      "a sequence of " + std::to_string(local), by_tensor, local);
  }
  if (split.context > 1 && run.attention == AttentionKernels::kUnfused) {
    return fail("context parallel with unfused attention; expected fused (flash) attention");
  }
  return split;
}

}  // namespace

double TransformerShape::stream() const {
  return static_cast<double>(tokens) * static_cast<double>(spec->hidden);
}

double TransformerShape::split_stream() const {
  return static_cast<double>(split_tokens) * static_cast<double>(spec->hidden);
}

double TransformerShape::gathered_stream() const {
  return static_cast<double>(gathered_tokens) * static_cast<double>(spec->hidden);
}

double TransformerShape::scores() const {
  const auto s = static_cast<double>(sequence);
  return static_cast<double>(batch * heads) * s * s;
}

std::uint64_t padded_vocabulary(std::uint64_t rows, std::uint32_t tensor) {
  if (tensor <= 1) return rows;
  const std::uint64_t unit = kVocabularyUnit * tensor;
  return (rows + unit - 1) / unit * unit;
}

Result<Split> check_split(const TransformerSpec& spec, const Split& split) {
  BUBBLESIM_RETURN_IF_ERROR(check_sizes(split));
  BUBBLESIM_RETURN_IF_ERROR(check_spec(spec, split));
  const auto divides = [&](std::uint64_t t) {
    const bool experts = !spec.mixture || spec.mixture->expert_ffn % t == 0;
    return spec.heads % t == 0 && spec.kv_heads % t == 0 && spec.ffn % t == 0 && experts;
  };
  if (!divides(split.tensor)) {
    return no_divisor("tensor", split.tensor, sizes(spec), divides, spec.heads);
  }
  const std::uint64_t experts = spec.mixture ? spec.mixture->experts : 1;
  const auto by_expert = [&](std::uint64_t e) { return experts % e == 0; };
  if (!by_expert(split.expert)) {
    return no_divisor("expert", split.expert, std::to_string(experts) + " expert(s)", by_expert,
                      experts);
  }
  return split;
}

Result<TransformerShape> transformer_shape(const TransformerSpec& spec, const Split& split,
                                           const TrainingShape& run, Pass pass) {
  BUBBLESIM_RETURN_IF_ERROR(check_split(spec, split));
  BUBBLESIM_RETURN_IF_ERROR(check_tokens(split, run));
  TransformerShape out;
  out.spec = &spec;
  out.split = split;
  out.run = run;
  out.pass = pass;
  out.element = bytes_of(run.precision == Precision::kFp8 ? Precision::kBf16 : run.precision);
  out.batch = run.micro_batch;
  out.sequence = run.sequence / split.context;
  out.tokens = out.batch * out.sequence;
  out.split_tokens = out.splits_sequence() ? out.tokens / split.tensor : out.tokens;
  out.heads = spec.heads / split.tensor;
  out.kv_heads = spec.kv_heads / split.tensor;
  out.query_columns = out.heads * spec.head_size;
  out.kv_columns = out.kv_heads * spec.head_size;
  out.ffn = spec.ffn / split.tensor;
  out.vocabulary = padded_vocabulary(spec.vocabulary, split.tensor) / split.tensor;
  out.dropout = spec.dropout && pass == Pass::kTraining;
  return out;
}

}  // namespace bubblesim::model
