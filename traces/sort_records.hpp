// Orders of a rank's records: by their starts, by their launches; and the removal of duplicates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ranges>
#include <utility>
#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::traces {

// A stable sort that first checks whether records are in order: usually they are, which saves the
// sort and its memory.

template <class Records, class Earlier>
void sort_stably(Records& records, Earlier earlier) {
  if (std::is_sorted(records.begin(), records.end(), earlier)) return;
  std::stable_sort(records.begin(), records.end(), earlier);
}

/// Sorts records by their starts; returns the new index of each.
template <class Record>
std::vector<std::uint32_t> places_by_start(std::vector<Record>& records) {
  std::vector<std::uint32_t> order(records.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return records[i].start; });
  std::vector<Record> sorted;
  sorted.reserve(records.size());
  std::vector<std::uint32_t> places(records.size());
  for (const std::uint32_t old : order) {
    places[old] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(records[old]);
  }
  records = std::move(sorted);
  return places;
}

/// The operations with a recorded launch, into device_ops, in order of their launches.
[[nodiscard]] inline std::vector<std::uint32_t> ops_by_launch(const RankTrace& trace) {
  std::vector<std::uint32_t> ops;
  for (std::uint32_t i = 0; i < trace.device_ops.size(); ++i) {
    if (trace.device_ops[i].launch != kNone) ops.push_back(i);
  }
  std::ranges::stable_sort(ops, {}, [&](std::uint32_t i) { return trace.device_ops[i].launch; });
  return ops;
}

/// Removes records equal to an earlier one with the same start; returns their number. `records`:
/// sorted by start. O(n).
template <class Record, class Same>
std::uint64_t remove_duplicates(std::vector<Record>& records, Same same) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    bool duplicate = false;
    // Few records share a start; the search is cut off for hostile files with all starts equal.
    for (std::size_t back = kept; back-- > 0 && kept - back <= 64;) {
      if (records[back].start != records[i].start) break;
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
