// Draws a planned timeline. All lengths in pixels.
#include "traces/inspect/timeline_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "sim/text/markup_text.hpp"
#include "traces/inspect/labels.hpp"
#include "traces/inspect/axis_ticks.hpp"
#include "traces/inspect/timeline_lanes.hpp"

namespace bubblesim::traces {
namespace {

constexpr double kWidth = 1600;
constexpr double kLeft = 190;      // of the plot: rank and lane labels stand before it
constexpr double kRight = 24;      // margin
constexpr double kPlot = kWidth - kLeft - kRight;
constexpr double kTop = 84;        // title, subtitle and axis labels
constexpr double kLegend = 74;     // below the blocks
constexpr double kLaneGap = 3;
constexpr double kBlockGap = 14;
constexpr double kIterationStrip = 15;
constexpr double kMinIterationLabel = 44;
constexpr std::size_t kMaxIterations = 1000;  // drawn in all blocks together: 0.25 MB
constexpr std::size_t kTitleColumns = 110;

class Drawing {
 public:
  Drawing(const JobTrace& job, std::size_t max_ranks)
      : job_(job), plan_(plan_timeline(job, max_ranks, static_cast<std::uint32_t>(kPlot))) {}

  std::string svg() {
    double y = kTop;
    for (const TimelineBlock& block : plan_.blocks) y = draw_block(block, y);
    if (plan_.blocks.empty()) y = draw_nothing(y);
    const double height = y + kLegend;
    std::string body = std::exchange(out_, {});
    draw_head(height);
    if (!plan_.blocks.empty()) draw_axis(y - kBlockGap + 4);
    out_ += body;
    if (!plan_.blocks.empty()) draw_legend(y + 10);
    return out_ + "</svg>\n";
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  [[nodiscard]] double x_of(Duration since_view) const {
    return kLeft + kPlot * fraction(since_view, plan_.length);
  }

  void draw_head(double height) {
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"Inter,Helvetica,Arial,sans-serif\" "
        "font-size=\"12\" fill=\"#1f2937\">\n",
        kWidth, height);
    put("<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        markup_text(title()));
    put("<text x=\"24\" y=\"32\" font-size=\"18\" font-weight=\"600\">{}</text>\n",
        markup_text(shortened(title(), kTitleColumns)));
    put("<text x=\"24\" y=\"52\" fill=\"#6b7280\">{}</text>\n", markup_text(subtitle()));
  }

  [[nodiscard]] std::string title() const {
    if (job_.ranks.empty()) return "Timeline";
    const std::string& source = job_.ranks.front().provenance.source;
    if (source.empty()) return "Timeline";
    if (job_.ranks.size() == 1) return "Timeline of " + source;
    return fmt::format("Timeline of {} and {} more", source, job_.ranks.size() - 1);
  }

  [[nodiscard]] std::string subtitle() const {
    if (plan_.blocks.empty()) return fmt::format("{} ranks", job_.ranks.size());
    std::string text = device_label(job_.ranks.front().device);
    text += plan_.blocks.size() == job_.ranks.size()
                ? fmt::format(" \u00b7 {} rank{}", job_.ranks.size(),
                              job_.ranks.size() == 1 ? "" : "s")
                : fmt::format(" \u00b7 {} of {} ranks", plan_.blocks.size(), job_.ranks.size());
    text += " \u00b7 " + short_duration(plan_.length);
    const WindowUse use = all_use();
    text += fmt::format(" \u00b7 busy {}, bubbles {} ({} without any operation)",
                        percent(use.busy, use.length), percent(use.bubble(), use.length),
                        percent(use.idle(), use.length));
    if (plan_.origin == TimelineOrigin::kEachRank) {
      text += " \u00b7 clocks not aligned: each rank from its own first operation";
    }
    return text;
  }

  [[nodiscard]] WindowUse all_use() const {
    WindowUse use;
    for (const TimelineBlock& block : plan_.blocks) use.add(block.use);
    return use;
  }

  void draw_axis(double bottom) {
    for (const AxisTick& tick : axis_ticks(plan_.length)) {
      const double x = x_of(tick.at);
      put("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#d8dde4\"/>", x, kTop - 8, bottom);
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#4b5563\">{}</text>\n", x,
          kTop - 13, tick.label);
    }
  }

  double draw_block(const TimelineBlock& block, double y) {
    const double top = y;
    if (block.iterations.marked) y = draw_iterations(block, y);
    put("<text x=\"24\" y=\"{:.1f}\" font-size=\"14\" font-weight=\"600\">rank {}</text>\n",
        top + 14, block.rank);
    put("<text x=\"24\" y=\"{:.1f}\" font-size=\"11\" fill=\"#6b7280\">bubbles {}</text>\n",
        top + 30, percent(block.use.bubble(), block.use.length));
    for (const TimelineLane& lane : block.lanes) y = draw_lane(lane, y);
    return std::max(y, top + 34) + kBlockGap;
  }

  double draw_lane(const TimelineLane& lane, double y) {
    const double middle = y + lane.height_px / 2;
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" font-size=\"10\" "
        "fill=\"#6b7280\">{}</text>\n",
        kLeft - 8, middle + 3.5, markup_text(lane.label));
    put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#eef1f5\" "
        "fill-opacity=\"0.55\"/>\n",
        kLeft, y, kPlot, lane.height_px);
    // Columns are x units of the group; a horizontal stroke is as high as the lane.
    put("<g transform=\"translate({:.1f} {:.1f}) scale({:.6f} 1)\" stroke-width=\"{:.1f}\" "
        "shape-rendering=\"crispEdges\">\n",
        kLeft, middle, kPlot / plan_.columns, lane.height_px);
    std::map<std::pair<Paint, std::uint8_t>, std::string> paths;
    for (const PaintRun& run : lane.runs) {
      fmt::format_to(std::back_inserter(paths[{run.paint, run.level}]), "M{} 0h{}", run.column,
                     run.columns);
    }
    for (const auto& [style, path] : paths) {
      put("<path stroke=\"{}\" stroke-opacity=\"{:.2f}\" d=\"{}\"/>\n", paint_colour(style.first),
          static_cast<double>(style.second) / kPaintLevels, path);
    }
    put("</g>\n");
    return y + lane.height_px + kLaneGap;
  }

  double draw_iterations(const TimelineBlock& block, double y) {
    const std::size_t most = std::max<std::size_t>(1, kMaxIterations / plan_.blocks.size());
    std::size_t drawn = 0;
    for (const Iteration& iteration : block.iterations.all) {
      const Interval seen{std::max(iteration.span.begin, block.view.begin),
                          std::min(iteration.span.end, block.view.end)};
      if (seen.begin >= seen.end || ++drawn > most) continue;
      const double left = x_of(seen.begin - block.view.begin);
      const double wide = x_of(seen.end - block.view.begin) - left;
      put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"2\" "
          "fill=\"{}\"/>\n",
          left + 0.5, y, std::max(wide - 1, 0.5), kIterationStrip - kLaneGap,
          drawn % 2 == 0 ? "#dbe3ee" : "#e8edf4");
      if (wide < kMinIterationLabel) continue;
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"9.5\" fill=\"#4b5563\">{}</text>\n",
          left + 5, y + 9.5, iteration_label(iteration, wide));
    }
    return y + kIterationStrip;
  }

  static std::string iteration_label(const Iteration& iteration, double wide) {
    const std::string length = short_duration(iteration.span.length());
    if (iteration.number < 0 || wide < 2.2 * kMinIterationLabel) return length;
    return fmt::format("iteration {} \u00b7 {}", iteration.number, length);
  }

  void draw_legend(double y) {
    const WindowUse use = all_use();
    double x = kLeft;
    for (const auto& [paint, label] :
         {std::pair{Paint::kCompute, "kernel"}, std::pair{Paint::kCollective, "collective"},
          std::pair{Paint::kPeer, "send/recv"}, std::pair{Paint::kCopy, "copy"},
          std::pair{Paint::kMemset, "memset"}}) {
      x = draw_key(x, y, paint, label);
    }
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#6b7280\">paler: less of the pixel is "
        "covered</text>\n",
        x + 6, y + 10);
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#6b7280\">device</text>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#6b7280\">bubbles by "
        "cause</text>\n",
        kLeft - 8, y + 10, kLeft - 8, y + 34);
    x = kLeft;
    for (std::size_t i = 0; i < kBubbleCauseCount; ++i) {
      const auto cause = static_cast<BubbleCause>(i);
      if (use.by_cause[i] <= Duration{}) continue;
      x = draw_key(x, y + 24, paint_of(cause),
                   fmt::format("{} {}", bubble_cause_label(cause),
                               percent(use.by_cause[i], use.length)));
    }
  }

  /// Returns where the next key starts; text is taken as 6.6 px a character at 12 px.
  double draw_key(double x, double y, Paint paint, std::string_view label) {
    put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        x, y, paint_colour(paint), x + 18, y + 10, markup_text(label));
    return x + 40 + 6.6 * static_cast<double>(label.size());
  }

  double draw_nothing(double y) {
    put("<text x=\"24\" y=\"{:.1f}\" fill=\"#6b7280\">No device operations to draw.</text>\n",
        y + 10);
    return y + 20;
  }

  const JobTrace& job_;
  TimelinePlan plan_;
  std::string out_;
};

}  // namespace

std::string render_timeline_svg(const JobTrace& job, std::size_t max_ranks) {
  return Drawing(job, max_ranks).svg();
}

}  // namespace bubblesim::traces
