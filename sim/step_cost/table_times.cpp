#include "sim/step_cost/table_times.hpp"

#include <algorithm>

namespace bubblesim::step_cost {

TableTimes::TableTimes(const RankTables& tables, const model::TransformerSpec& model,
                       const ServerLayout& layout, std::uint32_t sm_count)
    : tables_(tables), model_(model), layout_(layout),
      attention_(tables, std::max(1U, model.kv_heads / layout.tensor), sm_count) {}

double TableTimes::batch_us(const Batch& batch) {
  return dense_us(batch.padded_tokens) + model_.layers * attention_.layer_us(batch, beyond_) +
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
  // Of each token's experts 1 / ranks are on this GPU: so many tokens have all of theirs here.
  return model_.layers * tables_.experts->interpolated(group_tokens / ranks, busy, beyond_);
}

void TableTimes::add_counters(CounterSet& counters) const {
  counters.add(kBeyondLayerTables, beyond_.lookups);
}

}  // namespace bubblesim::step_cost
