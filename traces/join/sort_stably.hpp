// A stable sort of what mostly is in order: looking first spares the sort, and its memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace bubblesim::traces {

template <class Records, class Earlier>
void sort_stably(Records& records, Earlier earlier) {
  if (std::is_sorted(records.begin(), records.end(), earlier)) return;
  std::stable_sort(records.begin(), records.end(), earlier);
}

/// Sorts records by their starts; gives the new place of each.
template <class Record>
std::vector<std::uint32_t> places_by_start(std::vector<Record>& records) {
  std::vector<std::uint32_t> order(records.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return records[a].start < records[b].start;
  });
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

}  // namespace bubblesim::traces
