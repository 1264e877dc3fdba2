// A step of the engine: which sequences go through the model together, and how many tokens of each.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/serving/request.hpp"

namespace bubblesim::serving {

/// What a step does for one request. A decoding sequence has one new token, and drafted ones.
struct StepSequence {
  std::uint64_t request = 0;     ///< its number
  std::uint32_t new_tokens = 1;  ///< that go through the model
  std::uint32_t context = 0;     ///< tokens before them, whose keys and values are in the cache
  std::uint32_t drafted = 0;     ///< of the new tokens, those that are checked
  std::uint32_t slot = 0;        ///< the scheduler's own index
  /// Computes its prompt, or after a preemption prompt and output again; else decodes the token
  /// that it sampled last.
  bool prefill = false;
  bool emits = false;  ///< samples a token: all of its tokens are computed after this step
};

/// Sums over the sequences of a step.
struct StepTotals {
  std::uint32_t prefill_sequences = 0;
  std::uint32_t decode_sequences = 0;
  std::uint32_t emitting_sequences = 0;  ///< rows of the last layer's logits
  std::uint64_t prefill_tokens = 0;      ///< new ones
  std::uint64_t prefill_context = 0;
  std::uint64_t decode_tokens = 0;       ///< new ones
  std::uint64_t decode_context = 0;

  [[nodiscard]] std::uint64_t tokens() const { return prefill_tokens + decode_tokens; }
  void add(const StepSequence& sequence);
  void remove(const StepSequence& sequence);
  friend bool operator==(const StepTotals&, const StepTotals&) = default;
};

struct ScheduledStep {
  std::uint64_t number = 0;              ///< from 0
  std::vector<StepSequence> sequences;   ///< in the order in which they were scheduled
  StepTotals totals;
  std::vector<std::uint64_t> preempted;  ///< requests that lost their place, newest first
  std::uint32_t blocks_swapped_out = 0;  ///< to the host (SwapTiming)
  std::uint32_t blocks_swapped_in = 0;   ///< from the host
  std::uint32_t swap_copies = 0;  ///< groups of blocks (SchedulerSpec::swap_group); 0: all in one
  bool awaits_swaps = false;  ///< SwapTiming::kBeside: computes for sequences that come back in it

  void add(const StepSequence& sequence);
  /// An empty one; vectors keep their memory.
  void clear();
};

/// What a step's end has brought.
struct StepOutcome {
  std::uint32_t tokens = 0;                ///< that reach users
  std::vector<std::uint64_t> first_token;  ///< requests that have their first
  std::vector<Duration> gaps;              ///< of each further token, since the one before it
  std::vector<FinishedRequest> finished;   ///< in the step's order
};

}  // namespace bubblesim::serving
