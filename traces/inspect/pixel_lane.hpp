// A lane of the timeline picture: coverage of pixel columns by colour, and the runs of equal
// columns that are drawn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/inspect/bubbles.hpp"
#include "traces/iterations/intervals.hpp"

namespace bubblesim::traces {

/// What a column shows. Bubble causes follow in their own order.
enum class Paint : std::uint8_t { kCompute, kCollective, kPeer, kCopy, kMemset, kFirstCause };
inline constexpr std::size_t kPaintCount =
    static_cast<std::size_t>(Paint::kFirstCause) + kBubbleCauseCount;

[[nodiscard]] Paint paint_of(BubbleCause cause);
/// "#rrggbb"
[[nodiscard]] std::string_view paint_colour(Paint paint);

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

  /// Parts of `span` outside the view are left out. O(columns that it covers).
  void add(Interval span, Paint paint);
  [[nodiscard]] std::vector<PaintRun> runs() const;

 private:
  using Coverage = std::array<float, kPaintCount>;  ///< share of the column, by paint

  Interval view_;
  double columns_per_ns_;
  std::vector<Coverage> columns_;
};

}  // namespace bubblesim::traces
