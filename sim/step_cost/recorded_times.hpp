// Kernel times from recorded steps of the engine: the kernel model's, times how much longer than by
// it the recorded steps took.
//
// A recorded step's factor is its kernels' time over that of the kernel model for the same sums.
// The factors of steps that decode only and of those with prompts are apart: graphs and
// FlashAttention's kernels differ. Steps with equal tokens (padded to the captured graph) have the
// geometric mean of their factors; between token counts the factor is linear in the logarithm of
// the tokens, beyond them it is the last one's. So a recorded step is met, and what differs from it
// in context alone moves as the model says.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "sim/step_cost/model_times.hpp"
#include "sim/step_cost/recorded_steps.hpp"

namespace bubblesim::step_cost {

/// Counts servers whose steps were recorded on another GPU than the simulated one.
inline constexpr CounterSpec kRecordedOnOtherGpu{
    "recorded_steps_of_other_gpu", Severity::kNotice,
    "servers whose steps were recorded on another GPU than the one simulated; its kernel model is "
    "corrected by them all the same"};

class RecordedTimes final : public KernelTimes {
 public:
  /// `sizes`: of the engine, which is taken to be the recorded one. `members`: of its group,
  /// which recorded as much as this one; 1 alone. Precondition: there are steps.
  RecordedTimes(const ModelTimes& model, const RecordedSteps& steps, const CaptureSizes& sizes,
                std::uint32_t members);

  [[nodiscard]] double batch_us(const Batch& batch) override;
  /// Experts are among the kernels of the batch.
  [[nodiscard]] double experts_us(double group_tokens) override;
  void add_counters(CounterSet& counters) const override;

 private:
  using Factors = std::map<double, double>;  ///< by tokens

  [[nodiscard]] double factor(bool decodes_only, double tokens);

  ModelTimes model_;
  std::array<Factors, 2> factors_;  ///< of steps that decode only, and of those with prompts
  std::uint64_t beyond_ = 0;
  std::uint64_t other_kind_ = 0;
  std::uint64_t far_ = 0;
};

}  // namespace bubblesim::step_cost
