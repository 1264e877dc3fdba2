// Steps of an engine as a trace of it shows them: what each computed, how long its kernels took.
// bubblesim.steps (Python) reads them from a profiler's trace.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bubblesim::step_cost {

/// Sums over the sequences of one kind in a step.
struct StepSums {
  double sequences = 0;
  double tokens = 0;    ///< new in this step
  double keys = 0;      ///< cached and new
  double squares = 0;   ///< of new tokens
  double products = 0;  ///< of new tokens and keys

  friend bool operator==(const StepSums&, const StepSums&) = default;
};

struct RecordedStep {
  StepSums prompts;
  StepSums singles;  ///< sequences that generate
  /// Time in which a kernel of the step ran, or the device passed to a kernel that it had been
  /// given already; without collectives.
  double kernels_us = 0;

  friend bool operator==(const RecordedStep&, const RecordedStep&) = default;
};

struct RecordedSteps {
  std::string gpu;     ///< as the profiler calls it; empty: not recorded
  std::string source;  ///< the trace
  std::vector<RecordedStep> steps;
};

/// Whether some sequences have these sums: each has a new token at least, which attends to itself.
[[nodiscard]] bool can_be(const StepSums& sums);
/// What that is, for messages.
inline constexpr std::string_view kSumsThatCanBe =
    "sequences <= tokens <= keys, squares <= products, and squares from tokens^2 / sequences to "
    "(tokens - sequences + 1)^2 + sequences - 1";

}  // namespace bubblesim::step_cost
