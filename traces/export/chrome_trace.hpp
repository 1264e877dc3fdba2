// Timelines as Chrome trace JSON, which ui.perfetto.dev and chrome://tracing open.
//
// Format: "Trace Event Format" (Google, 2016), JSON object form. Spans are "X" events, names "M",
// values over time "C", arrows "s"/"t"/"f". Times are microseconds with three decimals, which keeps
// every nanosecond; they should be counted from near zero, because viewers read them as doubles.
// Spans of a track that overlap are put on lanes, each a thread of its own, so no
// span ever partly overlaps another of its thread.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim::traces {

// Spreads simultaneous spans over lanes, because trace viewers draw the spans of one thread as a
// stack and fail when one of them only partly overlaps another.

/// The shape of a lane.
enum class LaneShape : std::uint8_t {
  kFlat,    ///< one span at a time: streams, requests
  kNested,  ///< spans inside spans: calls of a host thread
};

/// A span from `start_ns` up to, not including, `end_ns`; end_ns >= start_ns.
struct LaneSpan {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// A lane for each span, in the order of `spans`; lanes are numbered from 0 without gaps. Any two
/// spans of a lane are disjoint or, if the shape allows it, one lies inside the other. Each span
/// takes the lowest possible lane, in order of start (longer first). O(n log n).
[[nodiscard]] std::vector<std::uint32_t> assign_lanes(const std::vector<LaneSpan>& spans,
                                                      LaneShape shape);

/// The flow of a span without arrows.
inline constexpr std::uint64_t kNoFlow = std::numeric_limits<std::uint64_t>::max();

/// One span. Its texts outlive the trace.
struct ChromeSlice {
  std::uint32_t track = 0;  ///< index into ChromeTrace::tracks
  std::string_view name;
  std::string_view category;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;  ///< below 0: written as 0, and counted
  std::uint64_t flow = kNoFlow;  ///< arrows connect spans of one flow, in order of start
};

/// A row of spans, one or more lanes high. Shown in the order of ChromeTrace::tracks.
struct ChromeTrack {
  std::uint32_t process = 0;  ///< index into ChromeTrace::processes
  std::string name;
  LaneShape shape = LaneShape::kFlat;
};

struct ChromeSample {
  std::int64_t at_ns = 0;
  double value = 0;  ///< not finite: left out, and counted
};

/// A value over time, drawn as a graph.
struct ChromeCounter {
  std::uint32_t process = 0;
  std::string name;
  std::vector<ChromeSample> samples;
};

struct ChromeTrace {
  std::vector<std::string> processes;  ///< names, in the order to be shown
  std::vector<ChromeTrack> tracks;
  std::vector<ChromeSlice> slices;     ///< in any order
  std::vector<ChromeCounter> counters;
  std::string flow_name = "flow";      ///< the arrows' meaning: "request", "launch"
  std::vector<std::pair<std::string, std::string>> notes;  ///< "otherData": name, text
};

/// Counts of written parts.
struct ChromeStats {
  std::uint64_t slices = 0;
  std::uint64_t threads = 0;          ///< lanes of all tracks
  std::uint64_t arrows = 0;
  std::uint64_t samples = 0;
  std::uint64_t clamped_slices = 0;   ///< negative durations
  std::uint64_t dropped_samples = 0;  ///< values that JSON cannot express
};

/// Writes piece by piece; needs about 40 bytes for each span beside the trace. A failed write shows
/// in the state of `out`.
ChromeStats write_chrome_trace(std::ostream& out, const ChromeTrace& trace);

/// Writes to a file; a fault if it cannot be written whole.
[[nodiscard]] Result<ChromeStats> write_chrome_trace_file(const std::string& path,
                                                          const ChromeTrace& trace);

}  // namespace bubblesim::traces
