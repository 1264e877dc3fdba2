// A lane of the timeline picture: coverage of pixel columns by colour, and the runs of equal
// columns that are drawn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/inspect/bubbles.hpp"
#include "traces/iterations/intervals.hpp"

namespace bubblesim::traces {

/// What a column shows. Bubble causes follow in their own order; the last ones are of simulations.
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
/// The paint of that name; nothing: there is none.
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

  /// Parts of `span` outside the view are left out. `share` of it is covered, evenly. O(columns
  /// that it covers).
  void add(Interval span, Paint paint, double share = 1);
  /// Columns of which less than `visible` is covered stay empty: by default, one part in 50,000
  /// cannot be meant.
  [[nodiscard]] std::vector<PaintRun> runs(float visible = 2e-5F) const;

 private:
  using Coverage = std::array<float, kPaintCount>;  ///< share of the column, by paint

  Interval view_;
  double columns_per_ns_;
  std::vector<Coverage> columns_;
};

}  // namespace bubblesim::traces
