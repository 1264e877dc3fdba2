// Steps of an engine as a trace of it shows them: what each computed, and how long its kernels
// took.
//
// An engine under a profiler names each step on its host thread. Two forms are known:
//
//   execute_context_9(8155)_generation_37(37)                                    vLLM
//   execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_...   detailed
//
// 9 sequences whose prompts have 8155 tokens in this step, and 37 that generate. sq: new tokens,
// sk: those and the cached ones, sqsq and sqsk: sums over sequences of sq^2 and of sq x sk. The
// first form does not say how much the cache holds. A step's kernels are those that its thread
// launched within the name's span, wherever the device runs them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "traces/trace.hpp"

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
  CounterSet counters;
};

/// Whether some sequences have these sums: each has a new token at least, which attends to itself.
[[nodiscard]] bool can_be(const StepSums& sums);
/// What that is, for messages.
inline constexpr std::string_view kSumsThatCanBe =
    "sequences <= tokens <= keys, squares <= products, and squares from tokens^2 / sequences to "
    "(tokens - sequences + 1)^2 + sequences - 1";

/// What the name of a step says, `kernels_us` being 0; nothing: it names no step. If the name does
/// not tell contexts (tells_contexts), each generating sequence attends to `context` tokens, its
/// new one included (at least 1), and prompts are equally long and nothing of them is cached.
[[nodiscard]] std::optional<RecordedStep> step_of_name(std::string_view name, double context);
/// Whether the name says how much the cache holds.
[[nodiscard]] bool tells_contexts(std::string_view name);

/// Reads the steps of one rank. Faults: it names no step whose kernels were recorded; no `context`
/// where names of generating sequences do not tell it.
[[nodiscard]] Result<RecordedSteps> recorded_steps(const traces::RankTrace& trace,
                                                   std::optional<double> context);

}  // namespace bubblesim::step_cost
