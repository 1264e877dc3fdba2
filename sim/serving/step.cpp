#include "sim/serving/step.hpp"

namespace bubblesim::serving {

void StepTotals::add(const StepSequence& sequence) {
  emitting_sequences += sequence.emits ? 1 : 0;
  if (sequence.prefill) {
    ++prefill_sequences;
    prefill_tokens += sequence.new_tokens;
    prefill_context += sequence.context;
  } else {
    ++decode_sequences;
    decode_tokens += sequence.new_tokens;
    decode_context += sequence.context;
  }
}

void StepTotals::remove(const StepSequence& sequence) {
  emitting_sequences -= sequence.emits ? 1 : 0;
  if (sequence.prefill) {
    --prefill_sequences;
    prefill_tokens -= sequence.new_tokens;
    prefill_context -= sequence.context;
  } else {
    --decode_sequences;
    decode_tokens -= sequence.new_tokens;
    decode_context -= sequence.context;
  }
}

void ScheduledStep::add(const StepSequence& sequence) {
  sequences.push_back(sequence);
  totals.add(sequence);
}

void ScheduledStep::clear() {
  sequences.clear();
  totals = {};
  preempted.clear();
  blocks_swapped_out = 0;
  blocks_swapped_in = 0;
  swap_copies = 0;
  awaits_swaps = false;
}

}  // namespace bubblesim::serving
