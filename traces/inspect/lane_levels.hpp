// Levels of detail of a timeline that can be zoomed: spans that can be pointed at, and for each
// lane pixel columns for views that hold more spans than pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/time.hpp"
#include "traces/inspect/pixel_lane.hpp"

namespace bubblesim::traces {

/// One operation, or neighbours that are too short and too close to be told apart.
struct ShownSpan {
  Duration start{};         ///< since the start of the view, >= 0
  Duration length{};        ///< >= 0
  std::uint32_t name = 0;   ///< an index of the caller's; of the longest that it stands for
  Paint paint = Paint::kCompute;  ///< likewise of the longest
  std::uint32_t count = 1;  ///< operations that it stands for
  Duration covered{};       ///< time within it in which any of them runs, <= length
  friend bool operator==(const ShownSpan&, const ShownSpan&) = default;
};

/// Spans in order of their start, as every list of spans here.
using ShownSpans = std::vector<ShownSpan>;

/// Neighbours that are shorter than `resolution`, with less than that between them, become one.
[[nodiscard]] ShownSpans join_short(const ShownSpans& spans, Duration resolution);

/// The least of 0, 128 ns, 256 ns, ... with which all lanes together keep at most `most` spans; at
/// most `length`, with which a lane may still keep longer spans than `most`.
[[nodiscard]] Duration resolution_for(std::span<const ShownSpans> lanes, std::size_t most,
                                      Duration length);

/// How a lane looks in so many equal columns over the whole view.
struct LaneLevel {
  std::uint32_t columns = 0;
  std::vector<PaintRun> runs;
  friend bool operator==(const LaneLevel&, const LaneLevel&) = default;
};

/// What covers less of a column than this share is shown by a closer look only: gaps of 1 us
/// between kernels would tint every column of a long view.
inline constexpr float kShownShare = 1.0F / 16;

/// Overlapping operations of one paint are united first, so that a column is as dark as the time
/// that any of them runs; joined spans count with their covered share. `length` of the view, > 0;
/// `visible` as in PixelLane::runs.
[[nodiscard]] std::vector<PaintRun> pixel_runs(const ShownSpans& spans, Duration length,
                                               std::uint32_t columns, float visible = kShownShare);

inline constexpr std::uint32_t kCoarsestColumns = 1024;

/// Levels of kCoarsestColumns columns, four times as many, and so on, as long as there are more
/// spans than columns: a view of less is drawn from the spans themselves.
[[nodiscard]] std::vector<LaneLevel> lane_levels(const ShownSpans& spans, Duration length);

}  // namespace bubblesim::traces
