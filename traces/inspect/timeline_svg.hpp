// A picture of a job's timeline as SVG: time to the right, a block of lanes a rank.
//
// Lanes of a rank: own work (kernels), communication, copies and memsets, and bubbles coloured by
// cause. Slices are gathered into pixel columns: a column has the colour that covers most of it
// and is the paler the less of it is covered. So the size depends on the number of lanes only:
// below 1 MB for any trace.
// Ranks whose windows have no common time are drawn each from its own first operation, and the
// picture says so: their clocks are not aligned.
#pragma once

#include <cstddef>
#include <string>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Well-formed UTF-8 XML of the job's first `max_ranks` ranks, at most 64; also for a job without
/// ranks or operations (it says so).
[[nodiscard]] std::string render_timeline_svg(const JobTrace& job, std::size_t max_ranks = 16);

}  // namespace bubblesim::traces
