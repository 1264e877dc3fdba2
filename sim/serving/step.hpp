// A scheduler's inputs and outputs: requests to a language-model server, the engine's steps that
// serve them (the sequences that go through the model together), and counts of both.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::serving {

/// The tokens that a prompt shares with prompts of other requests. Equal tokens have equal keys in
/// the prefix cache (vLLM, "Automatic Prefix Caching": a block's hash covers the block's tokens and
/// all before them).
struct SharedPrefix {
  /// The conversation of which this request is a turn: a turn's prompt begins with the previous
  /// turn's prompt and output. All tokens of such a request, prompt and output, belong to the
  /// conversation.
  std::optional<std::uint64_t> conversation;
  /// Hashes of the prompt from its first token on, each of `tokens_per_hash` tokens and of all
  /// before them (Mooncake's `hash_ids`, of 512 tokens). The last may cover fewer.
  std::vector<std::uint64_t> hashes;
  std::uint32_t tokens_per_hash = 0;  ///< 0: no hashes

  /// Whether the request declares its shared tokens.
  [[nodiscard]] bool is_known() const { return conversation || !hashes.empty(); }
};

/// Data of a request from another server, which computed its prompt and sampled its first token
/// (prefill and decode on different GPUs).
struct Handover {
  SimTime first_token{};
};

struct Request {
  std::uint64_t number = 0;         ///< chosen by the caller; unique among requests in flight
  SimTime arrival{};
  std::uint32_t prompt_tokens = 1;  ///< at least 1
  std::uint32_t output_tokens = 1;  ///< at least 1
  std::int32_t priority = 0;        ///< the smaller goes first; ignored by Order::kFirstCome
  SharedPrefix prefix;
  std::optional<Handover> handed{};  ///< its prompt's keys and values come with it, into own blocks
};

/// A served request. All of its instants are times at which a step was scheduled or ended.
struct FinishedRequest {
  std::uint64_t number = 0;
  std::uint32_t prompt_tokens = 1;
  std::uint32_t output_tokens = 1;
  std::uint32_t preemptions = 0;
  SimTime arrival{};
  SimTime admitted{};     ///< its first step was scheduled
  SimTime first_token{};
  SimTime last_token{};

  /// Time to first token, from arrival.
  [[nodiscard]] Duration ttft() const { return first_token - arrival; }
  [[nodiscard]] Duration latency() const { return last_token - arrival; }
  /// Time per output token after the first, rounded down to a nanosecond; nothing for a request of
  /// one token.
  [[nodiscard]] std::optional<Duration> tpot() const {
    if (output_tokens < 2) return std::nullopt;
    return (last_token - first_token) / (output_tokens - 1);
  }
};

/// A step's work for one request. A decoding sequence has one new token, and drafted ones.
struct StepSequence {
  std::uint64_t request = 0;     ///< the request's number
  std::uint32_t new_tokens = 1;  ///< that go through the model
  std::uint32_t context = 0;     ///< earlier tokens, whose keys and values are cached
  std::uint32_t drafted = 0;     ///< new tokens that are drafts to check
  std::uint32_t slot = 0;        ///< the scheduler's own index
  /// Computes its prompt or, after a preemption, prompt and output again; else decodes the last
  /// sampled token.
  bool prefill = false;
  bool emits = false;  ///< samples a token: all of its tokens are computed after this step
};

/// Sums over the sequences of a step.
struct StepTotals {
  std::uint32_t prefill_sequences = 0;
  std::uint32_t decode_sequences = 0;
  std::uint64_t prefill_tokens = 0;  ///< new ones
  std::uint64_t decode_tokens = 0;   ///< new ones
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
  bool awaits_swaps = false;  ///< SwapTiming::kBeside: computes for sequences swapped in during it

  void add(const StepSequence& sequence);
  /// Empties the step; vectors keep their memory.
  void clear();
};

/// A step of equal sequences that decode; `tokens`: of each, with drafts. By default what a member
/// of a data-parallel group without work runs, for no request (vLLM, `execute_dummy_batch`).
[[nodiscard]] ScheduledStep decode_step(std::uint32_t tokens, std::uint32_t sequences = 1,
                                        std::uint32_t context = 0);

/// What of a step's kernels one call launches (vLLM's default, CUDAGraphMode.FULL_AND_PIECEWISE).
enum class StepGraphs : std::uint8_t {
  kNone,
  kPieces,  ///< those between two attentions; an attention's own are launched one by one
  kWhole,
};

/// How a step is launched.
struct StepShape {
  StepGraphs graphs = StepGraphs::kNone;
  std::uint32_t tokens = 1;  ///< through the model
  std::uint32_t padded = 1;  ///< including padding to a captured graph
  std::uint32_t group = 1;   ///< padded, of all data-parallel members, which step together; without
                             ///< others, its own
};

/// Gives the members of a group, each with the shape of its step alone, those of the step together:
/// whole graphs only where each step is one, else pieces, and none where a step fits no graph;
/// graphs all have the largest size (vLLM, `coordinate_batch_across_dp` in
/// vllm/v1/worker/dp_utils.py).
void launch_alike(std::span<StepShape> members);

/// The results of a step's end.
struct StepOutcome {
  std::uint32_t tokens = 0;                ///< that reach users
  std::vector<std::uint64_t> first_token;  ///< requests that got their first
  std::vector<Duration> gaps;              ///< of each further token, since the previous one
  std::vector<FinishedRequest> finished;   ///< in the step's order
};

/// Counts since the scheduler was made. A finished request has prompt_tokens + output_tokens - 1
/// computed tokens, since its last one is only sampled. So when all requests have ended:
///   computed = (sum of these) - handed - prefix_hits + recomputed + dropped + rejected.
struct SchedulerCounts {
  std::uint64_t arrived = 0;    ///< and taken into the queue
  std::uint64_t finished = 0;
  std::uint64_t refused_by_window = 0;
  std::uint64_t refused_by_cache = 0;
  std::uint64_t refused_by_budget = 0;
  std::uint64_t steps = 0;
  std::uint64_t computed_tokens = 0;    ///< through the model
  std::uint64_t output_tokens = 0;      ///< tokens sent to users
  std::uint64_t prefix_hit_tokens = 0;  ///< not computed: they were in the cache
  std::uint64_t handed_tokens = 0;      ///< not computed: they came from a prefill server
  std::uint64_t recomputed_tokens = 0;  ///< computed before, lost in a preemption
  std::uint64_t dropped_tokens = 0;     ///< computed after the end of the output
  std::uint64_t drafted_tokens = 0;     ///< of those computed
  std::uint64_t rejected_tokens = 0;    ///< of those drafted
  std::uint64_t preemptions = 0;        ///< of both kinds
  std::uint64_t swaps_without_room = 0; ///< recomputed instead
  std::uint64_t blocks_swapped_out = 0;
  std::uint32_t most_blocks = 0;        ///< at once
  std::uint32_t most_running = 0;
};

/// Adds the counts as counters of a run's summary.
void add_counters(const SchedulerCounts& counts, CounterSet& counters);

}  // namespace bubblesim::serving
