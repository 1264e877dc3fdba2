// Asks the system for large pages under memory that is about to be filled: fewer faults, which
// otherwise take a third of reading a trace.
#pragma once

#include <cstddef>

namespace bubblesim::traces::format {

/// Advice only, for the whole large pages inside the range; does nothing where there are none.
void prefer_large_pages(void* start, std::size_t bytes);

}  // namespace bubblesim::traces::format
