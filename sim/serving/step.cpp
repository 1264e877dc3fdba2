#include "sim/serving/step.hpp"

#include <algorithm>

namespace bubblesim::serving {

void StepTotals::add(const StepSequence& sequence) {
  if (sequence.prefill) {
    ++prefill_sequences;
    prefill_tokens += sequence.new_tokens;
  } else {
    ++decode_sequences;
    decode_tokens += sequence.new_tokens;
    decode_context += sequence.context;
  }
}

void StepTotals::remove(const StepSequence& sequence) {
  if (sequence.prefill) {
    --prefill_sequences;
    prefill_tokens -= sequence.new_tokens;
  } else {
    --decode_sequences;
    decode_tokens -= sequence.new_tokens;
    decode_context -= sequence.context;
  }
}

ScheduledStep decode_step(std::uint32_t tokens, std::uint32_t sequences, std::uint32_t context) {
  ScheduledStep step;
  for (std::uint32_t i = 0; i < sequences; ++i) {
    step.add({.new_tokens = tokens, .context = context, .drafted = tokens - 1});
  }
  return step;
}

void launch_alike(std::span<StepShape> members) {
  const StepGraphs graphs = std::ranges::min(members, {}, &StepShape::graphs).graphs;
  const std::uint32_t padded = std::ranges::max(members, {}, &StepShape::padded).padded;
  std::uint32_t group = 0;
  for (StepShape& member : members) {
    member.graphs = graphs;
    member.padded = graphs == StepGraphs::kNone ? member.tokens : padded;
    group += member.padded;
  }
  for (StepShape& member : members) member.group = group;
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

namespace {

constexpr CounterSpec kRefusedByWindow{
    "server_requests_longer_than_window", Severity::kError,
    "requests refused: prompt and output are longer than the model's window (max_model_len)"};
constexpr CounterSpec kRefusedByCache{
    "server_requests_larger_than_cache", Severity::kError,
    "requests refused: the whole KV cache could not hold one of them"};
constexpr CounterSpec kRefusedByBudget{
    "server_requests_larger_than_budget", Severity::kError,
    "requests refused: whole prompts longer than a step's token budget (max_num_batched_tokens)"};
constexpr CounterSpec kPreemptions{
    "server_preemptions", Severity::kInfo,
    "times that a running request lost its place because the KV cache was full"};
constexpr CounterSpec kRecomputed{
    "server_tokens_recomputed", Severity::kInfo,
    "tokens computed again after preemptions"};
constexpr CounterSpec kDropped{
    "server_tokens_dropped", Severity::kInfo,
    "tokens computed after the end of their output: their step was scheduled before it was known"};
constexpr CounterSpec kPrefixHits{
    "server_tokens_from_prefix_cache", Severity::kInfo,
    "prompt tokens that were not computed: their keys and values were cached"};
constexpr CounterSpec kDrafted{
    "server_tokens_drafted", Severity::kInfo, "drafted tokens that decode steps checked"};
constexpr CounterSpec kRejected{
    "server_tokens_rejected", Severity::kInfo, "drafted tokens that were not accepted"};
constexpr CounterSpec kHanded{
    "server_tokens_handed_over", Severity::kInfo,
    "prompt tokens that were not computed here: a prefill server had computed them"};
constexpr CounterSpec kSwapsWithoutRoom{
    "server_swaps_without_room", Severity::kNotice,
    "preempted requests computed again, since the host had no room for their cache"};

}  // namespace

void add_counters(const SchedulerCounts& counts, CounterSet& counters) {
  counters.add(kRefusedByWindow, counts.refused_by_window);
  counters.add(kRefusedByCache, counts.refused_by_cache);
  counters.add(kRefusedByBudget, counts.refused_by_budget);
  counters.add(kPreemptions, counts.preemptions);
  counters.add(kRecomputed, counts.recomputed_tokens);
  counters.add(kDropped, counts.dropped_tokens);
  counters.add(kPrefixHits, counts.prefix_hit_tokens);
  counters.add(kDrafted, counts.drafted_tokens);
  counters.add(kRejected, counts.rejected_tokens);
  counters.add(kHanded, counts.handed_tokens);
  counters.add(kSwapsWithoutRoom, counts.swaps_without_room);
}

}  // namespace bubblesim::serving
