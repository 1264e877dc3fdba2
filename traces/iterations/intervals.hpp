// Half-open spans of recorded time and the set operations that bubble analysis needs.
//
// An `Intervals` is sorted by begin and disjoint; `unite` makes one from any list of spans. All
// operations are linear in the lengths of their inputs (unite: n log n when unsorted); those with
// a window find its begin by bisection.
#pragma once

#include <vector>

#include "sim/base/time.hpp"

namespace bubblesim::traces {

/// [begin, end), begin <= end.
struct Interval {
  TraceTime begin{};
  TraceTime end{};

  [[nodiscard]] Duration length() const { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Sorted and disjoint. An empty span stays in the list: an operation of zero recorded length
/// still divides the gap around it.
using Intervals = std::vector<Interval>;

/// The union of `spans`, in any order; spans that touch become one.
[[nodiscard]] Intervals unite(std::vector<Interval> spans);

/// The intersection; empty spans are dropped.
[[nodiscard]] Intervals intersect(const Intervals& a, const Intervals& b);

/// The time of `window` that is not in `busy`; empty spans are dropped.
[[nodiscard]] Intervals gaps_within(const Intervals& busy, Interval window);

/// The time of `from` that is not in `taken`; empty spans are dropped.
[[nodiscard]] Intervals subtract(const Intervals& from, const Intervals& taken);

[[nodiscard]] Duration total_length(const Intervals& spans);

/// The part of `spans` within `window`; empty spans are kept.
[[nodiscard]] Intervals clip(const Intervals& spans, Interval window);

}  // namespace bubblesim::traces
