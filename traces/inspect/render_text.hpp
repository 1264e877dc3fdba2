// An inspection for people: aligned columns, units, percentages; at most 100 columns.
#pragma once

#include <string>

#include "traces/inspect/inspection.hpp"

namespace bubblesim::traces {

/// Shares are of each rank's representative window: steady where iterations are marked.
/// Ends with a newline.
[[nodiscard]] std::string render_text(const JobInspection& job);

}  // namespace bubblesim::traces
