// One GPU of a run as a picture: the same lanes and colours as the page's, as SVG that stands by
// itself, follows the reader's light or dark scheme, and is some 20 kB.
#pragma once

#include <cstddef>
#include <string>

#include "sim/base/result.hpp"
#include "sim/report/view/timeline_view.hpp"

namespace bubblesim::report {

struct PictureOptions {
  std::string section;  ///< its title; empty: the first
  std::size_t gpu = 0;  ///< a place in ViewSection::charts
};

/// Fault: a section or GPU that the view does not have.
[[nodiscard]] Result<std::string> view_picture(const TimelineView& view,
                                               const PictureOptions& options);

}  // namespace bubblesim::report
