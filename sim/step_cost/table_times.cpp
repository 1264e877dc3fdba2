#include "sim/step_cost/table_times.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace bubblesim::step_cost {

TableTimes::TableTimes(const RankTables& tables, const model::TransformerSpec& model,
                       const ServerLayout& layout, std::uint32_t sm_count)
    : tables_(tables), model_(model), layout_(layout),
      attention_(tables, std::max(1U, model.kv_heads / layout.tensor), sm_count) {}

double TableTimes::batch_us(const Batch& batch) {
  return dense_us(batch.shape.padded) + model_.layers * attention_.layer_us(batch, beyond_) +
         tables_.lm_head.interpolated(batch.sequences, beyond_) +
         tables_.sampler.interpolated(batch.sequences, beyond_);
}

double TableTimes::dense_us(std::uint32_t tokens) {
  if (tokens >= dense_us_.size()) dense_us_.resize(tokens + 1);
  if (dense_us_[tokens]) return *dense_us_[tokens];
  double sum = 0;
  for (const auto& [name, curve] : tables_.dense) {
    const LayerCalls calls = *dense_calls_of(name);
    sum += (calls.each_step + static_cast<double>(calls.each_block) * model_.layers) *
           curve.at_least(tokens, beyond_);
  }
  dense_us_[tokens] = sum;
  return sum;
}

double TableTimes::experts_us(double group_tokens) {
  if (!tables_.experts) return 0;
  const double ranks = layout_.expert_ranks();
  const double busy = model::busy_experts(*model_.mixture, ranks, group_tokens);
  // 1 / ranks of each token's experts are on this GPU, as if so many tokens had all of theirs here.
  return model_.layers * tables_.experts->interpolated(group_tokens / ranks, busy, beyond_);
}

void TableTimes::add_counters(CounterSet& counters) const {
  counters.add(kBeyondLayerTables, beyond_.lookups);
}

namespace {

/// More sequences than can be left before bandwidth is shared by all of them: alone_us / shared_us
/// is 7 to 9 on the GPUs that were profiled.
constexpr std::size_t kLongest = 32;
/// FlashAttention 2, csrc/flash_attn/flash_api.cpp: num_splits_heuristic and its caller.
constexpr double kFullEnough = 0.8;
constexpr double kBlocksOnSm = 2;

/// The slope over prefixes of the smallest chunk, from the middle of the axis to its end.
double slope_of_smallest_chunk(const TimeGrid& prefill) {
  Beyond ignored;
  const double chunk = prefill.axes()[0].front();
  const Axis& prefixes = prefill.axes()[1];
  const double far = prefixes.back();
  const double near = prefixes[prefixes.size() > 2 ? prefixes.size() - 3 : 0];
  if (far <= near) return 0;
  const std::array<double, 2> at_far = {chunk, far};
  const std::array<double, 2> at_near = {chunk, near};
  return (prefill.interpolated(at_far, ignored) - prefill.interpolated(at_near, ignored)) /
         (far - near);
}

/// A chunk in place of several.
struct WholePrompt {
  double tokens = 0;
  double cached = 0;  ///< negative: fewer pairs than one chunk without a prefix has
};

WholePrompt whole_prompt(const std::vector<PromptChunk>& chunks) {
  WholePrompt whole;
  double pairs = 0;
  for (const PromptChunk& chunk : chunks) {
    whole.tokens += chunk.tokens;
    pairs += chunk.tokens * (chunk.cached + chunk.tokens / 2.0);
  }
  whole.cached = pairs / whole.tokens - whole.tokens / 2;
  return whole;
}

/// sum over j of (kj - kj+1) x max(0, alone - j x shared), of lengths in descending order; the one
/// after the last is 0.
double idle_us(const double* lengths, std::size_t count, double alone, double shared) {
  double sum = 0;
  for (std::size_t j = 1; j <= count; ++j) {
    const double lost = alone - static_cast<double>(j) * shared;
    if (lost <= 0) break;
    sum += lost * (lengths[j - 1] - (j < count ? lengths[j] : 0));
  }
  return sum;
}

}  // namespace

AttentionTime::AttentionTime(const RankTables& tables, std::uint32_t kv_heads,
                             std::uint32_t sm_count)
    : tables_(tables), kv_heads_(kv_heads), sm_count_(sm_count),
      alone_us_(slope_of_smallest_chunk(tables.prefill)) {}

double AttentionTime::layer_us(const Batch& batch, Beyond& beyond) const {
  return batch.decodes_only() ? decode_us(batch, beyond) : with_prompts_us(batch, beyond);
}

template <class TimeAt>
AttentionTime::Equal AttentionTime::equal_lengths(Lengths lengths, TimeAt time_at) const {
  const Axis& cached = tables_.decode.axes()[1];
  Beyond ignored;
  const Bracket at = bracket(cached, lengths.mean, ignored);
  const double low = time_at(cached[at.low]);
  if (at.low == at.high) return {low, alone_us_};
  const double high = time_at(cached[at.high]);
  const double slope = (high - low) / (cached[at.high] - cached[at.low]) / lengths.count;
  return {at.interpolated(low, high), std::max(slope, alone_us_ / kLongest)};
}

double AttentionTime::uneven_us(const Batch& batch, Lengths lengths, double shared_us) const {
  std::array<double, kLongest> longest{};
  const auto end = std::partial_sort_copy(batch.decodes.begin(), batch.decodes.end(),
                                          longest.begin(), longest.end(), std::greater<>{});
  const auto count = static_cast<std::size_t>(end - longest.begin());
  const double lost = idle_us(longest.data(), count, alone_us_, shared_us);
  const double lost_by_equals =
      lengths.mean * std::max(0.0, alone_us_ - lengths.count * shared_us);
  return std::max(0.0, lost - lost_by_equals);
}

bool AttentionTime::splits_keys(const Batch& batch) const {
  const double blocks = static_cast<double>(batch.shape.padded) * kv_heads_;
  return blocks < kFullEnough * kBlocksOnSm * sm_count_;
}

namespace {

double mean_of(const std::vector<std::uint32_t>& lengths) {
  double sum = 0;
  for (const std::uint32_t length : lengths) sum += length;
  return sum / static_cast<double>(lengths.size());
}

}  // namespace

double AttentionTime::decode_us(const Batch& batch, Beyond& beyond) const {
  const Lengths lengths{mean_of(batch.decodes), static_cast<std::uint32_t>(batch.decodes.size())};
  if (lengths.mean > tables_.decode.axes()[1].back()) ++beyond.lookups;
  const Equal equal = equal_lengths(lengths, [&](double cached) {
    return tables_.decode.interpolated(std::array{static_cast<double>(lengths.count), cached},
                                       beyond);
  });
  return equal.us + (splits_keys(batch) ? 0 : uneven_us(batch, lengths, equal.shared_us));
}

double AttentionTime::with_prompts_us(const Batch& batch, Beyond& beyond) const {
  const WholePrompt whole = whole_prompt(batch.chunks);
  const double prefix = std::max(0.0, whole.cached);
  const auto alone = [&](double tokens, double cached) {
    return tables_.prefill.interpolated(std::array{tokens, cached}, beyond);
  };
  double us = 0;
  if (whole.cached < 0) {
    const double smallest = alone(tables_.prefill.axes()[0].front(), 0);
    us = smallest - alone(whole.tokens, 0);
    for (const PromptChunk& chunk : batch.chunks) {
      us += alone(chunk.tokens, chunk.cached) - smallest;
    }
    us = std::min(us, 0.0);
  }
  if (batch.decodes.empty()) return us + alone(whole.tokens, prefix);
  const Lengths lengths{mean_of(batch.decodes), static_cast<std::uint32_t>(batch.decodes.size())};
  const Equal equal = equal_lengths(lengths, [&](double cached) {
    const auto count = static_cast<double>(lengths.count);
    if (!tables_.mixed.empty()) {
      return tables_.mixed.interpolated(std::array{whole.tokens, prefix, count, cached}, beyond);
    }
    ++beyond.lookups;
    return alone(whole.tokens, prefix) +
           tables_.decode.interpolated(std::array{count, cached}, beyond);
  });
  return us + equal.us + uneven_us(batch, lengths, equal.shared_us);
}

}  // namespace bubblesim::step_cost
