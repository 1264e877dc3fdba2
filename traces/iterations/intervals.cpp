// Linear merges over sorted, disjoint spans.
#include "traces/iterations/intervals.hpp"

#include <algorithm>
#include <cstddef>

namespace bubblesim::traces {
namespace {

/// The first span that ends at `from` or later. Ends rise as begins do: the spans are disjoint.
Intervals::const_iterator first_reaching(const Intervals& spans, TraceTime from) {
  return std::ranges::lower_bound(spans, from, {}, &Interval::end);
}

}  // namespace

Intervals unite(std::vector<Interval> spans) {
  if (!std::ranges::is_sorted(spans, {}, &Interval::begin)) {
    std::ranges::sort(spans, {}, &Interval::begin);
  }
  std::size_t kept = 0;
  for (const Interval& span : spans) {
    if (kept > 0 && span.begin <= spans[kept - 1].end) {
      spans[kept - 1].end = std::max(spans[kept - 1].end, span.end);
    } else {
      spans[kept++] = span;
    }
  }
  spans.resize(kept);
  return spans;
}

Intervals intersect(const Intervals& a, const Intervals& b) {
  Intervals common;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const Interval overlap{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (overlap.begin < overlap.end) common.push_back(overlap);
    if (a[i].end < b[j].end) {
      ++i;
    } else {
      ++j;
    }
  }
  return common;
}

Intervals gaps_within(const Intervals& busy, Interval window) {
  Intervals gaps;
  TraceTime free_from = window.begin;
  for (auto span = first_reaching(busy, window.begin); span != busy.end(); ++span) {
    if (span->begin >= window.end) break;
    if (span->begin > free_from) gaps.push_back({free_from, span->begin});
    free_from = std::max(free_from, span->end);
  }
  if (free_from < window.end) gaps.push_back({free_from, window.end});
  return gaps;
}

Intervals subtract(const Intervals& from, const Intervals& taken) {
  Intervals left;
  std::size_t first = 0;
  for (const Interval& span : from) {
    while (first < taken.size() && taken[first].end <= span.begin) ++first;
    TraceTime free_from = span.begin;
    for (std::size_t i = first; i < taken.size() && taken[i].begin < span.end; ++i) {
      if (taken[i].begin > free_from) left.push_back({free_from, taken[i].begin});
      free_from = std::max(free_from, taken[i].end);
    }
    if (free_from < span.end) left.push_back({free_from, span.end});
  }
  return left;
}

Duration total_length(const Intervals& spans) {
  Duration total{};
  for (const Interval& span : spans) total += span.length();
  return total;
}

Intervals clip(const Intervals& spans, Interval window) {
  Intervals inside;
  for (auto span = first_reaching(spans, window.begin); span != spans.end(); ++span) {
    if (span->begin > window.end) break;
    inside.push_back({std::max(span->begin, window.begin), std::min(span->end, window.end)});
  }
  return inside;
}

}  // namespace bubblesim::traces
