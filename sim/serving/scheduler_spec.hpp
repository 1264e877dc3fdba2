// The settings of a language-model engine's scheduler, under the names that vLLM has for them.
//
// Sources: vLLM's documentation of its engine arguments and `SchedulerConfig` (version 0.19);
// Kwon et al., SOSP 2023 (paged cache, preemption by recomputation and by swapping); Yu et al.,
// OSDI 2022 (Orca); Agrawal et al., OSDI 2024 (Sarathi-Serve); Shen et al., arXiv 2411.18424
// (FastSwitch).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/shared.hpp"

namespace bubblesim::serving {

/// The order of requests that compete.
enum class Order : std::uint8_t {
  kFirstCome,  ///< by arrival
  kPriority,   ///< by Request::priority, then by arrival; the last one is preempted first
};

/// The mixture of sequences in a step.
enum class Mixing : std::uint8_t {
  kDecodeFirst,  ///< running sequences, then prompts within the remaining budget (Sarathi-Serve)
  kPromptsApart, ///< a step of whole waiting prompts if one can be admitted, else one of decodes
                 ///< (vLLM up to 0.5 without chunked prefill); needs Chunking::kWhole
};

/// Whether a prompt may be computed over several steps.
enum class Chunking : std::uint8_t {
  kChunks,  ///< yes, as the budget allows
  kWhole,   ///< no: a prompt waits until all of it fits the budget (Orca)
};

/// Blocks that must be free to admit a waiting request. Only the blocks of the step's tokens are
/// taken at once, except with kWholeRequest.
enum class Reserve : std::uint8_t {
  kChunk,         ///< blocks of its first chunk
  kPrompt,        ///< blocks of all its tokens so far: vLLM's scheduler_reserve_full_isl
  kWholeRequest,  ///< blocks of prompt and whole output, kept for it, so that no preemption occurs
                  ///< (Orca)
};

/// The handling of a preempted sequence's cache.
enum class CachePreemption : std::uint8_t {
  kRecompute,  ///< dropped; prompt and output so far are computed again
  kSwap,       ///< copied to the host and back; recomputed if the host has no room
};

/// When swapped blocks are copied.
enum class SwapTiming : std::uint8_t {
  kBefore,  ///< before the step: all sequences wait
  kBeside,  ///< while the step runs; a returning sequence takes part from the next step on, if
            ///< there are others to compute for (FastSwitch: asynchronous swaps)
};

/// When a step is scheduled.
enum class Pacing : std::uint8_t {
  kSynchronous,  ///< when the previous step has ended
  kOneAhead,     ///< while the previous step runs (vLLM's async_scheduling)
};

/// How an engine that schedules ahead learns of a request's end.
enum class OutputEnd : std::uint8_t {
  kTokenLimit,  ///< its last token is known beforehand: it is not scheduled again, but keeps its
                ///< place and its blocks until that token is sampled
  kStopToken,   ///< not beforehand: a further token is computed and dropped
};

/// A decoding sequence's step computes its own token and drafted ones, and keeps the accepted ones.
/// The step's cost includes drafting: none if drafts are n-grams of the prompt (vLLM's `ngram`),
/// else a smaller model's passes.
struct Speculation {
  std::uint32_t tokens = 0;  ///< drafted in a step, at most those that the output lacks; 0: none
  /// Chances that 0, 1, ... `tokens` are accepted, of sum 1. Unused with `recorded`.
  std::vector<double> accepted;
  /// Tokens accepted in consecutive recorded steps, each at most `tokens`. A request begins at a
  /// random place of the list and continues cyclically; at most as many are accepted as drafted.
  /// Empty: `accepted` has the chances.
  Shared<std::vector<std::uint32_t>> recorded{};
};

/// Each drafted token is accepted with this chance if all before it were, so that a step yields
/// (1 - chance^(tokens + 1)) / (1 - chance) tokens on average (Leviathan et al., ICML 2023).
[[nodiscard]] std::vector<double> independent_acceptance(std::uint32_t tokens, double chance);

struct SchedulerSpec {
  std::uint32_t max_num_batched_tokens = 2048;  ///< a step; at least 1
  std::uint32_t max_num_seqs = 256;             ///< running at once; at least 1
  std::uint32_t max_model_len = 32768;          ///< prompt and output of a request
  std::uint32_t block_size = 16;                ///< tokens of a block of the cache
  /// Blocks for sequences. vLLM keeps one of its `num_gpu_blocks` for padding, so this is one less
  /// (`BlockPool`, the null block).
  std::uint32_t kv_blocks = 1;
  std::uint32_t host_blocks = 0;                ///< for swapping
  /// Blocks of a layer's keys or values that one copy moves, as far as a sequence has as many; 0:
  /// all that a step swaps at once (FastSwitch: block groups; vLLM copies block by block).
  std::uint32_t swap_group = 0;
  /// Full blocks that are swapped in stay on the host, too, and are not copied out again
  /// (FastSwitch).
  bool swap_reuse = false;
  /// A running sequence's prompt takes at most this many tokens a step; 0: as many as the budget.
  std::uint32_t long_prefill_token_threshold = 0;
  /// Share of the blocks, [0, 1), that admission leaves free while any sequence runs; 0 with
  /// Reserve::kWholeRequest.
  double watermark = 0;
  bool enable_prefix_caching = false;
  /// Share of every prompt, [0, 1), whose keys and values are cached at its first admission, in
  /// whole blocks; for workloads that do not say what their prompts share. The request owns these
  /// blocks: no memory is saved.
  double prefix_hit_rate = 0;
  Order order = Order::kFirstCome;
  Mixing mixing = Mixing::kDecodeFirst;
  Chunking chunking = Chunking::kChunks;
  Reserve reserve = Reserve::kPrompt;
  CachePreemption preemption = CachePreemption::kRecompute;
  SwapTiming swap_timing = SwapTiming::kBefore;
  Pacing pacing = Pacing::kSynchronous;
  OutputEnd output_end = OutputEnd::kTokenLimit;
  Speculation speculation{};  ///< with Pacing::kSynchronous only
  /// Steps after which the priorities of all requests in flight are redrawn, and the most urgent
  /// ones that fit the cache together replace the running ones (FastSwitch: fairness by changing
  /// priorities); 0: never. Only with Order::kPriority and CachePreemption::kSwap (recomputed
  /// requests might preempt each other for ever), and not with Reserve::kWholeRequest.
  std::uint32_t priority_period = 0;
  std::uint64_t seed = 0;  ///< of the draws: accepted tokens, priorities

  /// Tokens of a decoding sequence's step with all drafts (vLLM, `uniform_decode_query_len`).
  [[nodiscard]] std::uint32_t decode_query_len() const { return 1 + speculation.tokens; }
};

/// Each engine's scheduling settings; the caller adds sizes (blocks, window, sequences). vLLM 0.19
/// by default: chunks, prefix caching, one step ahead.
[[nodiscard]] SchedulerSpec vllm_settings();
/// Sarathi-Serve: decodes first, chunks within `chunk_budget` tokens a step (its section 4.3).
[[nodiscard]] SchedulerSpec sarathi_settings(std::uint32_t chunk_budget);
/// Orca: whole prompts beside decodes, memory of a whole request reserved (its sections 3.2, 4.2).
[[nodiscard]] SchedulerSpec orca_settings();

/// Faults: a size of 0, a share outside of its range, settings that exclude each other.
[[nodiscard]] Result<void> check(const SchedulerSpec& spec);

/// Blocks of `tokens` tokens.
[[nodiscard]] constexpr std::uint32_t blocks_of(const SchedulerSpec& spec, std::uint64_t tokens) {
  return static_cast<std::uint32_t>((tokens + spec.block_size - 1) / spec.block_size);
}

/// A CSV whose column `accepted` has the number of accepted drafts of each step, in order; other
/// columns are ignored. Faults, with the line: no such column, not a whole number of 0 to
/// `drafted`.
[[nodiscard]] Result<std::vector<std::uint32_t>> read_acceptance(const std::string& path,
                                                                 std::uint32_t drafted);

}  // namespace bubblesim::serving
