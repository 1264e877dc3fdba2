// What a scheduler has done, in numbers; which of them a run's summary must show.
#pragma once

#include <cstdint>

#include "sim/base/counters.hpp"

namespace bubblesim::serving {

/// Counts since the scheduler was made. A finished request has prompt_tokens + output_tokens - 1
/// computed tokens, for its last one is sampled only. So when all requests have ended:
///   computed = (sum of these) - handed - prefix_hits + recomputed + dropped + rejected.
struct SchedulerCounts {
  std::uint64_t arrived = 0;    ///< and taken into the queue
  std::uint64_t finished = 0;
  std::uint64_t refused_by_window = 0;
  std::uint64_t refused_by_cache = 0;
  std::uint64_t refused_by_budget = 0;
  std::uint64_t steps = 0;
  std::uint64_t computed_tokens = 0;    ///< through the model
  std::uint64_t output_tokens = 0;      ///< to users
  std::uint64_t prefix_hit_tokens = 0;  ///< not computed: they were in the cache
  std::uint64_t handed_tokens = 0;      ///< not computed: they came from a prefill server
  std::uint64_t recomputed_tokens = 0;  ///< computed before, lost in a preemption
  std::uint64_t dropped_tokens = 0;     ///< computed after the end of the output
  std::uint64_t drafted_tokens = 0;     ///< of those computed
  std::uint64_t rejected_tokens = 0;    ///< of those drafted
  std::uint64_t preemptions = 0;        ///< of both kinds
  std::uint64_t swap_outs = 0;          ///< sequences
  std::uint64_t swaps_without_room = 0; ///< recomputed instead
  std::uint64_t blocks_swapped_out = 0;
  std::uint64_t blocks_swapped_in = 0;
  std::uint32_t most_blocks = 0;        ///< held at once
  std::uint32_t most_waiting = 0;
  std::uint32_t most_running = 0;
};

/// Adds the counts as counters of a run's summary.
void add_counters(const SchedulerCounts& counts, CounterSet& counters);

}  // namespace bubblesim::serving
