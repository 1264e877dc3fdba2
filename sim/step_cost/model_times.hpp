// Kernel times from bubblesim's own kernel model, for engines without a profile: the kernels of
// sim/model/inference_work.hpp with the times of sim/model/kernel_time.hpp, and a run's gaps
// between operations of a stream or a captured graph.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/inference_work.hpp"
#include "sim/step_cost/engine_cost.hpp"

namespace bubblesim::step_cost {

class ModelTimes final : public KernelTimes {
 public:
  /// All arguments outlive this. Precondition: check_work accepts the model and split.
  ModelTimes(const model::ModelSpec& model, const ServerLayout& layout,
             const hardware::GpuSpec& gpu, const model::Efficiency& efficiency,
             model::Precision precision = model::Precision::kBf16);

  /// Fault: the model is no decoder, or cannot be split like this.
  [[nodiscard]] static Result<void> check_work(const model::ModelSpec& model,
                                               const ServerLayout& layout);

  /// Experts are included in the batch's kernels.
  [[nodiscard]] double batch_us(const Batch& batch) override;
  /// Microseconds of a batch with these sums.
  [[nodiscard]] double sums_us(const model::IterationSums& sums, StepGraphs graphs) const;

 private:
  [[nodiscard]] double attention_gaps(const model::IterationSums& sums) const;

  const model::ModelSpec& model_;
  model::Split split_;
  const hardware::GpuSpec& gpu_;
  const model::Efficiency& efficiency_;
  model::Precision precision_;
};

/// Sums over the sequences of one kind in a step.
struct StepSums {
  double sequences = 0;
  double tokens = 0;    ///< new tokens of this step
  double keys = 0;      ///< tokens, cached and new
  double squares = 0;   ///< of each sequence's new tokens
  double products = 0;  ///< of each sequence's new tokens and keys

  friend bool operator==(const StepSums&, const StepSums&) = default;
};

struct RecordedStep {
  StepSums prompts;
  StepSums singles;  ///< sequences that generate
  /// Time in which a kernel of the step ran, or the device switched to an already queued kernel;
  /// without collectives.
  double kernels_us = 0;

  friend bool operator==(const RecordedStep&, const RecordedStep&) = default;
};

struct RecordedSteps {
  std::string gpu;     ///< name by the profiler; empty: not recorded
  std::string source;  ///< the trace
  std::vector<RecordedStep> steps;
};

/// Whether sequences with these sums can exist; each has a new token, which attends to itself.
[[nodiscard]] bool can_be(const StepSums& sums);
/// The rule of can_be(), for messages.
inline constexpr std::string_view kSumsThatCanBe =
    "sequences <= tokens <= keys, squares <= products, and squares from tokens^2 / sequences to "
    "(tokens - sequences + 1)^2 + sequences - 1";

// Kernel times from recorded steps of the engine: the kernel model's times, scaled by recorded over
// modelled time.
//
// A recorded step's factor is its kernels' time over that of the kernel model for the same sums.
// Decode-only steps and steps with prompts have separate factors, since graphs and FlashAttention's
// kernels differ. Steps with equal tokens (padded to the captured graph) have the geometric mean of
// their factors; between token counts the factor is linear in the logarithm of the tokens, beyond
// them the last factor holds. So recorded steps are reproduced, and steps that differ only in
// context follow the model.

/// Counts servers whose steps were recorded on another GPU than the simulated one.
inline constexpr CounterSpec kRecordedOnOtherGpu{
    "recorded_steps_of_other_gpu", Severity::kNotice,
    "servers whose steps were recorded on another GPU than the one simulated; its kernel model is "
    "corrected by them all the same"};

class RecordedTimes final : public KernelTimes {
 public:
  /// The engine with these graphs is taken for the recorded one. Each of the group's `members` is
  /// taken to have had the recorded tokens; 1: no group. Precondition: there are steps.
  RecordedTimes(const ModelTimes& model, const RecordedSteps& steps, const CapturedGraphs& captured,
                std::uint32_t members);

  [[nodiscard]] double batch_us(const Batch& batch) override;
  /// Experts are included in the batch's kernels.
  void add_counters(CounterSet& counters) const override;

 private:
  using Factors = std::map<double, double>;  ///< by tokens

  [[nodiscard]] double factor(bool decodes_only, double tokens);

  ModelTimes model_;
  std::array<Factors, 2> factors_;  ///< of decode-only steps, and of steps with prompts
  std::uint64_t beyond_ = 0;
  std::uint64_t other_kind_ = 0;
  std::uint64_t far_ = 0;
};

/// Reads a file of `python3 -m bubblesim.steps TRACE -o FILE`, which converts a profiler's trace.
[[nodiscard]] CheckedResult<RecordedSteps> read_steps_file(const std::string& path);

}  // namespace bubblesim::step_cost
