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

/// Which request goes first when all want to.
enum class Order : std::uint8_t {
  kFirstCome,  ///< by arrival
  kPriority,   ///< by Request::priority, then by arrival; the last one is preempted first
};

/// What a step may mix.
enum class Mixing : std::uint8_t {
  kDecodeFirst,  ///< running sequences, then prompts within what is left (Sarathi-Serve)
  kPromptsApart, ///< a step of whole waiting prompts if one can be admitted, else one of decodes
                 ///< (vLLM up to 0.5 without chunked prefill); needs Chunking::kWhole
};

/// Whether a prompt may be computed over several steps.
enum class Chunking : std::uint8_t {
  kChunks,  ///< as the budget allows
  kWhole,   ///< a prompt waits until the whole of it has room in the budget (Orca)
};

/// Blocks that must be free for a waiting request to be admitted. Only those of the step's tokens
/// are taken at once, except with kWholeRequest.
enum class Reserve : std::uint8_t {
  kChunk,         ///< those of its first chunk
  kPrompt,        ///< those of all its tokens so far: vLLM's scheduler_reserve_full_isl
  kWholeRequest,  ///< prompt and whole output, kept for it: nothing is ever preempted (Orca)
};

/// What becomes of the cache of a preempted sequence.
enum class CachePreemption : std::uint8_t {
  kRecompute,  ///< dropped; prompt and output so far are computed again
  kSwap,       ///< copied to the host and back; recomputed if the host has no room
};

/// When swapped blocks are copied.
enum class SwapTiming : std::uint8_t {
  kBefore,  ///< before the step: all sequences wait
  kBeside,  ///< while the step runs; a sequence that comes back takes part from the next one on, if
            ///< there are others to compute for (FastSwitch: asynchronous swaps)
};

/// When a step is scheduled.
enum class Pacing : std::uint8_t {
  kSynchronous,  ///< when the step before it has ended
  kOneAhead,     ///< while the step before it runs (vLLM's async_scheduling)
};

/// What an engine that schedules ahead knows about a request's end.
enum class OutputEnd : std::uint8_t {
  kTokenLimit,  ///< its last token is known beforehand: it is not scheduled again, but keeps its
                ///< place and its blocks until that token is there
  kStopToken,   ///< it is not: a further token is computed and dropped
};

/// A decoding sequence's step computes its own token and as many drafted ones, and keeps those that
/// are accepted. The step's cost has the time of drafting: none where drafts are n-grams of the
/// prompt (vLLM's `ngram`), else a smaller model's passes.
struct Speculation {
  std::uint32_t tokens = 0;  ///< drafted a step, or as many as the output still lacks; 0: none
  /// Chances that 0, 1, ... `tokens` are accepted; their sum is 1. Unused with `recorded`.
  std::vector<double> accepted;
  /// Tokens accepted in consecutive recorded steps, each at most `tokens`. A request begins at a
  /// random place of the list, and goes on from there, round and round; if fewer are drafted, no
  /// more are accepted. Empty: `accepted` has the chances.
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
  /// Blocks that sequences can have. vLLM keeps one of its `num_gpu_blocks` for padding, so this is
  /// one less (`BlockPool`, the null block).
  std::uint32_t kv_blocks = 1;
  std::uint32_t host_blocks = 0;                ///< for swapping
  /// Blocks that one copy moves of a layer's keys or values, as far as a sequence has as many; 0:
  /// all that a step swaps at once (FastSwitch: block groups; vLLM copies block by block).
  std::uint32_t swap_group = 0;
  /// Full blocks that come back stay on the host, too, and are not copied out again (FastSwitch).
  bool swap_reuse = false;
  /// A running sequence's prompt takes at most so many tokens a step; 0: as many as the budget.
  std::uint32_t long_prefill_token_threshold = 0;
  /// Share of the blocks, [0, 1), that admission leaves free while anything runs; 0 with
  /// Reserve::kWholeRequest.
  double watermark = 0;
  bool enable_prefix_caching = false;
  /// Share of every prompt, [0, 1), whose keys and values are there already when it is admitted for
  /// the first time, in whole blocks; for workloads that do not say what their prompts share. These
  /// blocks are the request's own: nothing is saved in memory.
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
  /// Steps after which the priorities of all requests in flight are drawn anew, and the most urgent
  /// ones that the cache holds together run, in place of those that ran (FastSwitch: fairness by
  /// priorities that change); 0: never. With Order::kPriority and CachePreemption::kSwap only
  /// (recomputed, requests that take turns may never end), and not with Reserve::kWholeRequest.
  std::uint32_t priority_period = 0;
  std::uint64_t seed = 0;  ///< of what is drawn: tokens that are accepted, priorities
};

/// The settings with which each engine schedules; sizes (blocks, window, sequences) are the
/// caller's. vLLM 0.19 by default: chunks, prefix caching, one step ahead.
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

/// A CSV whose column `accepted` says, in the order of the steps, how many of a step's drafted
/// tokens were accepted; other columns are not read. Faults, with the line: no such column, not a
/// whole number of 0 to `drafted`.
[[nodiscard]] Result<std::vector<std::uint32_t>> read_acceptance(const std::string& path,
                                                                 std::uint32_t drafted);

}  // namespace bubblesim::serving
