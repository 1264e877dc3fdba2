// A recorded job to look at: a row a rank, with kernels, communication, copies, and bubbles by
// cause.
#pragma once

#include <string>

#include "sim/report/view/timeline_view.hpp"
#include "traces/trace.hpp"

namespace bubblesim::report {

/// `title` of the page. Of jobs with many ranks the first 64; a note says so.
[[nodiscard]] TimelineView trace_view(const traces::JobTrace& job, const std::string& title);

}  // namespace bubblesim::report
