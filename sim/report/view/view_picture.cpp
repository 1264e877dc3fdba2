// All lengths in pixels.
#include "sim/report/view/view_picture.hpp"

#include <bubblesim_view_picture.hpp>  // made by the build: scripts/cmake/embed_page.cmake
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "sim/base/nearest.hpp"
#include "sim/report/page_parts.hpp"
#include "sim/text/escaped_text.hpp"
#include "traces/inspect/labels.hpp"

namespace bubblesim::report {
namespace {

using traces::kPaintCount;
using traces::Paint;

constexpr double kLeft = 136;    // of the plot: names and figures of rows stand before it
constexpr double kRight = 112;   // names of lanes stand behind it
constexpr double kColumn = 632.0 / 420;  // of the plot, where lanes are few
/// Strokes of all lanes together. One takes at most 12 bytes, so 0.6 MB.
constexpr std::size_t kMostStrokes = 50'000;
constexpr double kLeastMarkGap = 12;
constexpr std::size_t kHeadingLetters = 200;
constexpr double kHeadingLine = 18;
constexpr double kTop = 22;
constexpr double kLegendLine = 20;
constexpr double kThick = 17;
constexpr double kThin = 7;
constexpr double kLaneGap = 2;
constexpr double kRowGap = 16;
constexpr double kLetter = 6.1;  // of legends, at 12 px

struct Layout {
  double width;
  float visible;  ///< what covers less than this share of a column is not drawn
  std::string_view axis;  ///< a line below it
};
constexpr Layout kOfRun{880, traces::kShownShare,
                        "since an iteration began; vertical lines: the next ones"};
constexpr Layout kOfTrace{1600, 2e-5F, "vertical lines: where iterations begin and end"};

class Picture {
 public:
  Picture(const TimelineChart& chart, const Layout& layout)
      : chart_(chart), layout_(layout), plot_(layout.width - kLeft - kRight) {
    std::size_t lanes = 1;
    for (const ChartRow& row : chart.rows) lanes += row.lanes.size();
    columns_ = static_cast<std::uint32_t>(
        std::min<double>(std::round(plot_ / kColumn), static_cast<double>(kMostStrokes / lanes)));
  }

  /// `heading`: lines above all else.
  std::string svg(const std::string& title, const std::vector<std::string>& heading) {
    double y = draw_heading(heading);
    if (chart_.length > Duration{}) y = draw_chart(y);
    return filled_page(view_picture_files::kPage,
                       {{"title", markup_text(title)},
                        {"width", fmt::format("{:.0f}", layout_.width)},
                        {"height", fmt::format("{:.0f}", y)},
                        {"body", out_}});
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  /// Both return where the next thing is drawn.
  double draw_heading(const std::vector<std::string>& lines) {
    double y = kTop;
    for (const std::string& line : lines) {
      put("<text class=\"{}\" x=\"16\" y=\"{:.0f}\">{}</text>\n",
          &line == lines.data() ? "strong" : "soft", y,
          markup_text(traces::shortened(line, kHeadingLetters)));
      y += kHeadingLine;
    }
    return lines.empty() ? y : y + 6;
  }

  double draw_chart(double y) {
    y = draw_legend(y) + 22;
    const double top = y;
    const std::string above = std::exchange(out_, {});
    for (const ChartRow& row : chart_.rows) y = draw_row(row, y) + kRowGap;
    y -= kRowGap - 6;
    const std::string rows = std::exchange(out_, {});
    draw_axis(top - 6, y);
    out_ += above + rows;
    return y + 44;
  }

  [[nodiscard]] double x_of(Duration at) const {
    return kLeft + plot_ * to_seconds(at) / to_seconds(chart_.length);
  }

  /// What is painted, in the order of Paint.
  [[nodiscard]] std::vector<Paint> paints() const {
    std::array<bool, kPaintCount> seen{};
    for (const ChartRow& row : chart_.rows) {
      for (const ChartLane& lane : row.lanes) {
        for (const auto& span : lane.spans) seen[static_cast<std::size_t>(span.paint)] = true;
      }
    }
    std::vector<Paint> list;
    for (std::size_t i = 0; i < kPaintCount; ++i) {
      if (seen[i]) list.push_back(static_cast<Paint>(i));
    }
    return list;
  }

  /// A line of what runs, a line of what is missing. Returns the y of the second.
  double draw_legend(double y) {
    std::vector<Paint> work;
    std::vector<Paint> bubbles;
    for (const Paint paint : paints()) (is_bubble(paint) ? bubbles : work).push_back(paint);
    draw_keys("what runs", work, y);
    draw_keys("bubbles", bubbles, y + kLegendLine);
    return y + kLegendLine;
  }

  void draw_keys(std::string_view title, const std::vector<Paint>& list, double y) {
    put("<text class=\"soft\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>\n",
        kLeft - 12, y + 4, title);
    double x = kLeft;
    for (const Paint paint : list) {
      const std::string_view label = traces::paint_label(paint);
      put("<path class=\"k-{}\" stroke-width=\"11\" d=\"M{:.0f} {:.0f}h11\"/>"
          "<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
          traces::paint_name(paint), x, y, x + 17, y + 4, label);
      x += 36 + kLetter * static_cast<double>(label.size());
    }
  }

  static bool is_bubble(Paint paint) {
    return paint == Paint::kIdle || (paint >= Paint::kFirstCause && paint < Paint::kFiller);
  }

  double draw_row(const ChartRow& row, double y) {
    put("<text class=\"strong\" x=\"16\" y=\"{:.0f}\">{}</text>\n", y + 12,
        markup_text(row.label));
    double at = y + 28;
    for (std::size_t from = 0; from < row.note.size();) {  // a line a part
      const std::size_t to = std::min(row.note.find(", ", from), row.note.size());
      put("<text class=\"soft\" x=\"16\" y=\"{:.0f}\">{}</text>\n", at,
          markup_text(row.note.substr(from, to - from)));
      at += 15;
      from = to + 2;
    }
    double bottom = y;
    for (const ChartLane& lane : row.lanes) {
      if (!lane.spans.empty()) bottom = draw_lane(lane, bottom) + kLaneGap;
    }
    draw_marks(row, y, bottom);
    return std::max(bottom, at - 10);
  }

  double draw_lane(const ChartLane& lane, double y) {
    const double height = lane.form == LaneForm::kThin ? kThin : kThick;
    const double middle = y + height / 2;
    put("<rect class=\"ground\" x=\"{:.0f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\"/>"
        "<text class=\"small\" x=\"{:.0f}\" y=\"{:.1f}\">{}</text>\n",
        kLeft, y, plot_, height, kLeft + plot_ + 8, middle + 3.5, markup_text(lane.label));
    // Columns are x units of the group; a horizontal stroke is as high as the lane.
    put("<g transform=\"translate({:.0f} {:.1f}) scale({:.5f} 1)\" stroke-width=\"{:.0f}\">\n",
        kLeft, middle, plot_ / columns_, height);
    std::map<std::pair<Paint, std::uint8_t>, std::string> paths;
    for (const auto& run : traces::pixel_runs(lane.spans, chart_.length, columns_,
                                              layout_.visible)) {
      fmt::format_to(std::back_inserter(paths[{run.paint, run.level}]), "M{} 0h{}", run.column,
                     run.columns);
    }
    for (const auto& [style, path] : paths) {
      put("<path class=\"k-{} l{}\" d=\"{}\"/>\n", traces::paint_name(style.first), style.second,
          path);
    }
    put("</g>\n");
    return y + height;
  }

  /// Where iterations begin and end, as long as one can be told from the next.
  void draw_marks(const ChartRow& row, double top, double bottom) {
    double last = -kLeastMarkGap;
    for (const ChartMark& mark : row.marks) {
      const Duration end = mark.start + mark.length;
      for (const Duration at : {mark.start, end}) {
        const double x = x_of(at);
        if (at <= Duration{} || at >= chart_.length || x < last + kLeastMarkGap) continue;
        put("<path class=\"mark\" d=\"M{:.1f} {:.0f}V{:.0f}\"/>\n", x, top - 4, bottom + 2);
        last = x;
      }
    }
  }

  void draw_axis(double top, double bottom) {
    for (const traces::AxisTick& tick : traces::axis_ticks(chart_.length)) {
      put("<path class=\"grid\" d=\"M{0:.1f} {1:.0f}V{2:.0f}\"/>"
          "<text class=\"small\" x=\"{0:.1f}\" y=\"{3:.0f}\" text-anchor=\"middle\">{4}</text>\n",
          x_of(tick.at), top, bottom, bottom + 15, tick.label);
    }
    put("<text class=\"small\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", kLeft, bottom + 32,
        layout_.axis);
  }

  const TimelineChart& chart_;
  const Layout& layout_;
  double plot_;  ///< its width
  std::uint32_t columns_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> view_picture(const TimelineView& view, const PictureOptions& options) {
  std::vector<std::string> titles;
  for (const ViewSection& section : view.sections) titles.push_back(section.title);
  const auto found = std::find(titles.begin(), titles.end(), options.section);
  if (!options.section.empty() && found == titles.end()) {
    return fail("--section", {}, unknown_name_message("section", options.section, titles));
  }
  const std::size_t place =
      options.section.empty() ? 0 : static_cast<std::size_t>(found - titles.begin());
  if (place >= view.sections.size() || options.gpu >= view.sections[place].charts.size()) {
    const std::size_t count =
        place < view.sections.size() ? view.sections[place].charts.size() : 0;
    return fail("--gpu", {}, fmt::format("found {}, expected one of the {} GPUs with a timeline",
                                         options.gpu, count));
  }
  const ViewChart& chart = view.sections[place].charts[options.gpu];
  return Picture(chart.chart, kOfRun)
      .svg(fmt::format("{}, {}: what training leaves idle, and what fills it", view.title,
                       chart.label),
           {});
}

std::string trace_picture(const TimelineView& view) {
  const ViewSection& section = view.sections.front();
  std::vector<std::string> heading{"Timeline of " + view.title};
  heading.insert(heading.end(), section.notes.begin(), section.notes.end());
  const TimelineChart nothing;
  return Picture(section.charts.empty() ? nothing : section.charts.front().chart, kOfTrace)
      .svg(heading.front(), heading);
}

}  // namespace bubblesim::report
