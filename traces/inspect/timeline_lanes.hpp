// A timeline before it is drawn: a view of time, and lanes of spans.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/time.hpp"
#include "traces/inspect/bubbles.hpp"
#include "traces/inspect/inspection.hpp"
#include "traces/iterations/intervals.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

// Levels of detail of a zoomable timeline: selectable spans, and for each lane pixel columns for
// views with more spans than pixels.

// A lane of the timeline picture: coverage of pixel columns by colour, and the runs of equal
// columns that are drawn.

/// The colour of a column. Bubble causes follow in their own order; the last ones are for
/// simulations.
enum class Paint : std::uint8_t {
  kCompute, kCollective, kPeer, kCopy, kMemset,
  kFirstCause,
  kFiller = kFirstCause + kBubbleCauseCount,  ///< work of a filler beside the job
  kIdle,     ///< a bubble in which no operation of the job runs
  kPaused,   ///< an operation that stands still
  kHold,     ///< a launch that a policy holds
  kRequest,  ///< from arrival to completion
  kPhase,    ///< an iteration or another span of a host thread
};
inline constexpr std::size_t kPaintCount = static_cast<std::size_t>(Paint::kPhase) + 1;

[[nodiscard]] Paint paint_of(BubbleCause cause);
/// snake_case and unique: "kernel", "send_recv"; of a cause, bubble_cause_name().
[[nodiscard]] std::string_view paint_name(Paint paint);
/// The name for people: "kernel", "send or receive"; of a cause, bubble_cause_label().
[[nodiscard]] std::string_view paint_label(Paint paint);
/// The paint of this name; nothing: none.
[[nodiscard]] std::optional<Paint> paint_named(std::string_view name);

/// Opacity of a column in kPaintLevels steps: 1 is the palest.
inline constexpr std::uint8_t kPaintLevels = 4;

struct PaintRun {
  std::uint32_t column = 0;
  std::uint32_t columns = 0;
  Paint paint = Paint::kCompute;
  std::uint8_t level = kPaintLevels;
  friend bool operator==(const PaintRun&, const PaintRun&) = default;
};

class PixelLane {
 public:
  /// `columns` equal columns over `view`, which is not empty.
  PixelLane(Interval view, std::uint32_t columns);

  /// Parts of `span` outside the view are ignored. `share` of the span is covered, evenly.
  /// O(columns that it covers).
  void add(Interval span, Paint paint, double share = 1);
  /// Columns whose covered share is below `visible` stay empty: by default one part in 50,000,
  /// which is a rounding error.
  [[nodiscard]] std::vector<PaintRun> runs(float visible = 2e-5F) const;

 private:
  using Coverage = std::array<float, kPaintCount>;  ///< share of the column, by paint

  Interval view_;
  double columns_per_ns_;
  std::vector<Coverage> columns_;
};

/// One operation, or neighbours too short and close to be distinguished.
struct ShownSpan {
  Duration start{};         ///< since the start of the view, >= 0
  Duration length{};        ///< >= 0
  std::uint32_t name = 0;   ///< the caller's index of the longest operation's name
  Paint paint = Paint::kCompute;  ///< of the longest operation
  std::uint32_t count = 1;  ///< number of operations in it
  Duration covered{};       ///< time within it in which any of these runs, <= length
  friend bool operator==(const ShownSpan&, const ShownSpan&) = default;
};

/// Spans in order of their start, like every list of spans here.
using ShownSpans = std::vector<ShownSpan>;

/// Joins neighbours that are shorter than `resolution`, with a smaller gap between them.
[[nodiscard]] ShownSpans join_short(const ShownSpans& spans, Duration resolution);

/// The finest resolution (0, 128 ns, 256 ns, ...) at which all lanes together keep at most `most`
/// spans. If there is none up to `length`, returns `length`.
[[nodiscard]] Duration resolution_for(std::span<const ShownSpans> lanes, std::size_t most,
                                      Duration length);

/// A lane in a number of equal columns over the whole view.
struct LaneLevel {
  std::uint32_t columns = 0;
  std::vector<PaintRun> runs;
  friend bool operator==(const LaneLevel&, const LaneLevel&) = default;
};

/// Columns with a smaller covered share are shown only when zoomed in: gaps of 1 us between kernels
/// would tint every column of a long view.
inline constexpr float kShownShare = 1.0F / 16;

/// Overlapping operations of one paint are united first, so that a column is as dark as the time in
/// which any of them runs; joined spans count with their covered share. `length`: of the view, > 0;
/// `visible` as in PixelLane::runs.
[[nodiscard]] std::vector<PaintRun> pixel_runs(const ShownSpans& spans, Duration length,
                                               std::uint32_t columns, float visible = kShownShare);

inline constexpr std::uint32_t kCoarsestColumns = 1024;

/// Levels of kCoarsestColumns columns, four times as many, and so on, while there are more spans
/// than columns: the page draws narrower views from the spans themselves.
[[nodiscard]] std::vector<LaneLevel> lane_levels(const ShownSpans& spans, Duration length);

struct TimelineLane {
  std::string label;
  ShownSpans spans;  ///< names index the rank's table; bubbles have none
};

/// One rank's block.
struct TimelineBlock {
  std::uint32_t rank = 0;
  Interval view;          ///< in the rank's own recorded time
  WindowUse use;          ///< over the rank's window, which lies within the view
  Iterations iterations;
  std::vector<TimelineLane> lanes;
};

enum class TimelineOrigin : std::uint8_t { kShared, kEachRank };

struct TimelinePlan {
  Duration length{};      ///< of the view; zero: nothing to draw
  TimelineOrigin origin = TimelineOrigin::kShared;
  std::vector<TimelineBlock> blocks;
};

/// The job's first `max_ranks` ranks, at most 64, with every operation and bubble as a span.
[[nodiscard]] TimelinePlan plan_timeline(const JobTrace& job, std::size_t max_ranks);

}  // namespace bubblesim::traces
