// Coverage of pixel columns.
#include "traces/inspect/pixel_lane.hpp"

#include <algorithm>
#include <cmath>

namespace bubblesim::traces {
namespace {

constexpr std::array<std::string_view, 5> kWorkNames{"kernel", "collective", "send_recv", "copy",
                                                     "memset"};
constexpr std::array<std::string_view, 6> kSimulatedNames{"filler", "idle",    "paused",
                                                          "hold",   "request", "phase"};
static_assert(kWorkNames.size() + kBubbleCauseCount + kSimulatedNames.size() == kPaintCount);

}  // namespace

Paint paint_of(BubbleCause cause) {
  return static_cast<Paint>(static_cast<std::uint8_t>(Paint::kFirstCause) +
                            static_cast<std::uint8_t>(cause));
}

std::string_view paint_name(Paint paint) {
  const auto place = static_cast<std::size_t>(paint);
  if (place < kWorkNames.size()) return kWorkNames[place];
  const std::size_t cause = place - kWorkNames.size();
  if (cause < kBubbleCauseCount) return bubble_cause_name(static_cast<BubbleCause>(cause));
  return kSimulatedNames[cause - kBubbleCauseCount];
}

std::string_view paint_label(Paint paint) {
  if (paint == Paint::kPeer) return "send or receive";
  if (paint == Paint::kHold) return "launch held";
  if (paint >= Paint::kFirstCause && paint < Paint::kFiller) {
    const auto cause = static_cast<std::size_t>(paint) - kWorkNames.size();
    return bubble_cause_label(static_cast<BubbleCause>(cause));
  }
  return paint_name(paint);
}

std::optional<Paint> paint_named(std::string_view name) {
  for (std::size_t i = 0; i < kPaintCount; ++i) {
    if (paint_name(static_cast<Paint>(i)) == name) return static_cast<Paint>(i);
  }
  return std::nullopt;
}

PixelLane::PixelLane(Interval view, std::uint32_t columns)
    : view_(view),
      columns_per_ns_(static_cast<double>(columns) / static_cast<double>(to_ns(view.length()))),
      columns_(columns, Coverage{}) {}

void PixelLane::add(Interval span, Paint paint, double share) {
  const TraceTime from = std::max(span.begin, view_.begin);
  const TraceTime to = std::min(span.end, view_.end);
  if (from >= to) return;
  const double left = static_cast<double>(to_ns(from - view_.begin)) * columns_per_ns_;
  const double right = std::min(static_cast<double>(to_ns(to - view_.begin)) * columns_per_ns_,
                                static_cast<double>(columns_.size()));
  const auto kind = static_cast<std::size_t>(paint);
  for (double edge = std::floor(left); edge < right; edge += 1) {
    const double covered = std::min(right, edge + 1) - std::max(left, edge);
    columns_[static_cast<std::size_t>(edge)][kind] += static_cast<float>(covered * share);
  }
}

std::vector<PaintRun> PixelLane::runs(float visible) const {
  std::vector<PaintRun> runs;
  for (std::uint32_t i = 0; i < columns_.size(); ++i) {
    const Coverage& column = columns_[i];
    float total = 0;
    for (const float share : column) total += share;
    if (total < visible) continue;
    const auto most = std::max_element(column.begin(), column.end()) - column.begin();
    const float filled = std::min(total, 1.0F) * kPaintLevels;
    const auto level = static_cast<std::uint8_t>(
        std::clamp(std::lround(filled), 1L, static_cast<long>(kPaintLevels)));
    const PaintRun run{i, 1, static_cast<Paint>(most), level};
    if (!runs.empty() && runs.back().column + runs.back().columns == i &&
        runs.back().paint == run.paint && runs.back().level == run.level) {
      ++runs.back().columns;
    } else {
      runs.push_back(run);
    }
  }
  return runs;
}

}  // namespace bubblesim::traces
