// The open ranges of threads: pushed ones, a stack a thread and domain, and started ones, which
// any thread may end. What is open is bounded; what does not fit is counted and left out, and the
// rest stays in balance.
#pragma once

#include <cstdint>

#include "capture/record/nvtx/nvtx_events.hpp"

namespace bubblesim::capture {

/// What happened to ranges that are not in the recording, since the process began.
struct NvtxCounts {
  std::uint64_t pops_without_push = 0;  ///< while recording: pushed before the recording began
  std::uint64_t too_deep = 0;           ///< more than 256 in a domain of a thread, 4,096 started
  std::uint64_t left_open = 0;          ///< when their thread ended
  std::uint64_t lost = 0;               ///< memory or a lock was not to be had
};
[[nodiscard]] NvtxCounts nvtx_counts() noexcept;

/// Counts what an entry point had to give up on.
void count_lost() noexcept;

/// Whether a push has to be told of: while recording, and while ranges of this thread are open.
[[nodiscard]] bool tracks_ranges() noexcept;

/// The range's level, from 0; kNotTracked while nothing records and where it does not fit.
[[nodiscard]] int push_range(NvtxCall&& call);
/// The level of the range that ended; kNotTracked where none was open.
int pop_range(nvtx_abi::Domain domain) noexcept;

/// 0: not tracked.
[[nodiscard]] nvtx_abi::RangeId start_range(NvtxCall&& call);
void end_range(nvtx_abi::RangeId id) noexcept;

}  // namespace bubblesim::capture
