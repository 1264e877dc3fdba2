// A stable sort of what mostly is in order: looking first spares the sort, and its memory.
#pragma once

#include <algorithm>

namespace bubblesim::traces {

template <class Records, class Earlier>
void sort_stably(Records& records, Earlier earlier) {
  if (std::is_sorted(records.begin(), records.end(), earlier)) return;
  std::stable_sort(records.begin(), records.end(), earlier);
}

}  // namespace bubblesim::traces
