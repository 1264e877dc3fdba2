// A recorded job to look at: a row a rank, with kernels, communication, copies, and bubbles by
// cause.
#pragma once

#include <cstddef>
#include <string>

#include "sim/report/view/timeline_view.hpp"
#include "traces/trace.hpp"

namespace bubblesim::report {

/// `title` of the page. If the job has more than `most_ranks` (at most 64), the first of them are
/// shown; a note says so.
[[nodiscard]] TimelineView trace_view(const traces::JobTrace& job, const std::string& title,
                                      std::size_t most_ranks = 64);

}  // namespace bubblesim::report
