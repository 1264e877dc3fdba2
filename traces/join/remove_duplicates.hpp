// Records that a profiler's file has twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bubblesim::traces {

/// Removes what equals an earlier record with the same start; returns how many it removed.
/// `records`: sorted by start. O(n).
template <class Record, class Start, class Same>
std::uint64_t remove_duplicates(std::vector<Record>& records, Start start, Same same) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    bool duplicate = false;
    // Only a few records share a start; hostile files with all starts equal are cut off.
    for (std::size_t back = kept; back-- > 0 && kept - back <= 64;) {
      if (start(records[back]) != start(records[i])) break;
      if (same(records[back], records[i])) {
        duplicate = true;
        break;
      }
    }
    if (!duplicate) records[kept++] = records[i];
  }
  const std::uint64_t removed = records.size() - kept;
  records.resize(kept);
  return removed;
}

}  // namespace bubblesim::traces
