// Timelines as pictures, with the lanes and colours of the page, as self-contained SVG that follows
// the reader's light or dark scheme. Spans shorter than a column of the picture are merged into it:
// one GPU of a run takes some 20 kB, a recorded job less than 1 MB.
#pragma once

#include <cstddef>
#include <string>

#include "sim/base/result.hpp"
#include "sim/report/view/timeline_view.hpp"

namespace bubblesim::report {

struct PictureOptions {
  std::string section;  ///< its title; empty: the first
  std::size_t gpu = 0;  ///< an index into ViewSection::charts
};

/// One GPU of a run. Fault: a section or GPU that the view lacks.
[[nodiscard]] Result<std::string> view_picture(const TimelineView& view,
                                               const PictureOptions& options);

/// A recorded job, as trace_view() shows it. A job without operations gives a picture that says so.
[[nodiscard]] std::string trace_picture(const TimelineView& view);

}  // namespace bubblesim::report
