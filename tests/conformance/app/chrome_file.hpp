// Checks of a Chrome trace file as Perfetto reads it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/base/json.hpp"

namespace bubblesim::app_test {

struct Span {
  std::int64_t start = 0;  ///< ns
  std::int64_t end = 0;
};

/// The complete slices ("ph": "X") by process and thread. The trace's times are microseconds with
/// three decimals.
inline std::map<std::pair<int, int>, std::vector<Span>> slices_of(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<Span>> tracks;
  for (const Json& event : trace["traceEvents"]) {
    if (event.value("ph", "") != "X") continue;
    const std::int64_t start = std::llround(event["ts"].get<double>() * 1e3);
    const std::int64_t length = std::llround(event["dur"].get<double>() * 1e3);
    EXPECT_GE(length, 0) << event;
    tracks[{event["pid"].get<int>(), event["tid"].get<int>()}].push_back({start, start + length});
  }
  return tracks;
}

/// Expects any two slices of a thread to be disjoint or nested: viewers draw others wrongly.
inline void expect_slices_nest(const Json& trace) {
  ASSERT_TRUE(trace.is_object() && trace.contains("traceEvents"));
  auto tracks = slices_of(trace);
  EXPECT_FALSE(tracks.empty());
  for (auto& [track, spans] : tracks) {
    std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    });
    std::vector<Span> open;
    for (const Span& span : spans) {
      while (!open.empty() && open.back().end <= span.start) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(span.end, open.back().end)
            << "process " << track.first << ", thread " << track.second << ": the slice from "
            << span.start << " ns ends after the one from " << open.back().start << " ns";
      }
      open.push_back(span);
    }
  }
}

}  // namespace bubblesim::app_test
