// Kernel times from layer tables.
//
// A step's kernels are those of its layers: dense ones by the batch's padded tokens, at the next
// profiled size (TimeCurve::at_least), the head and the sampler between profiled counts of
// sequences, attention as attention_time.hpp says.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/model/model_spec.hpp"
#include "sim/step_cost/attention_time.hpp"
#include "sim/step_cost/engine_cost.hpp"
#include "sim/step_cost/layer_tables.hpp"

namespace bubblesim::step_cost {

inline constexpr CounterSpec kBeyondLayerTables{
    "beyond_layer_tables", Severity::kNotice,
    "lookups above the last profiled point of an axis; times go on along the last two points"};

class TableTimes final : public KernelTimes {
 public:
  /// Everything outlives this.
  TableTimes(const RankTables& tables, const model::TransformerSpec& model,
             const ServerLayout& layout, std::uint32_t sm_count);

  [[nodiscard]] double batch_us(const Batch& batch) override;
  [[nodiscard]] double experts_us(double group_tokens) override;
  void add_counters(CounterSet& counters) const override;

 private:
  [[nodiscard]] double dense_us(std::uint32_t tokens);

  const RankTables& tables_;
  const model::TransformerSpec& model_;
  const ServerLayout& layout_;
  AttentionTime attention_;
  std::vector<std::optional<double>> dense_us_;  ///< by tokens, as far as they were asked for
  Beyond beyond_;
};

}  // namespace bubblesim::step_cost
