// Draws the cells. All lengths in pixels. Looks like the timelines of traces/inspect.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "sim/text/markup_text.hpp"
#include "sim/validate/measured_text.hpp"

namespace bubblesim::validate {
namespace {

constexpr double kPanel = 320;
constexpr double kLeft = 64;      // of a panel: its ticks stand before it
constexpr double kGap = 88;
constexpr double kTop = 96;
constexpr double kLegendTop = kTop + kPanel + 64;
constexpr double kLegendRow = 20;
constexpr double kBand = 0.05;

// Told apart by colour-blind readers and in grey (Okabe and Ito's palette, darkened yellow).
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#b8860b", "#56b4e9", "#000000", "#7c3aed"};

enum class AxisScale : std::uint8_t { kLinear, kLogarithmic };

struct Point {
  double measured = 0;
  double simulated = 0;
  const MeasuredCell* cell = nullptr;
};

struct Panel {
  std::string title;
  std::string unit;
  AxisScale scale = AxisScale::kLinear;
  std::vector<Point> points;
};

// A slowdown of s % leaves 1 / (1 + s / 100) of the throughput.
double left_of_slowdown(double percent) { return 100 / (1 + percent / 100); }

std::vector<Panel> panels_of(const std::vector<MeasuredCell>& cells) {
  std::vector<Panel> panels = {{"training throughput", "% of alone", AxisScale::kLinear, {}},
                               {"filler throughput", "% of a GPU of its own",
                                AxisScale::kLinear, {}},
                               {"p95 latency", "ms", AxisScale::kLogarithmic, {}}};
  for (const MeasuredCell& cell : cells) {
    if (cell.outcome != Outcome::kPredicted) continue;
    const Point point{cell.measured, cell.simulated, &cell};
    if (cell.metric == MeasuredMetric::kSlowdown) {
      panels[0].points.push_back({left_of_slowdown(cell.measured),
                                  left_of_slowdown(cell.simulated), &cell});
    } else if (cell.metric == MeasuredMetric::kFillerOfOwnGpu) {
      panels[1].points.push_back(point);
    } else if (cell.metric == MeasuredMetric::kP95 && cell.simulated > 0) {
      panels[2].points.push_back(point);
    }
  }
  return panels;
}

/// From values to pixels of one panel; both axes are alike.
class Axis {
 public:
  explicit Axis(const Panel& panel) : log_(panel.scale == AxisScale::kLogarithmic) {
    double low = HUGE_VAL;
    double high = 0;
    for (const Point& point : panel.points) {
      low = std::min({low, point.measured, point.simulated});
      high = std::max({high, point.measured, point.simulated});
    }
    if (panel.points.empty()) low = 1, high = 100;
    if (log_) {
      low_ = std::log10(low / 1.3);
      high_ = std::log10(high * 1.3);
    } else {
      const double margin = std::max(0.08 * (high - low), 0.02 * high + 0.01);
      low_ = std::max(0.0, low - margin);
      high_ = high + margin;
    }
  }
  [[nodiscard]] double at(double value) const {
    const double place = log_ ? std::log10(std::max(value, 1e-9)) : value;
    return kPanel * (place - low_) / (high_ - low_);
  }
  [[nodiscard]] double low() const { return log_ ? std::pow(10, low_) : low_; }
  [[nodiscard]] double high() const { return log_ ? std::pow(10, high_) : high_; }

  /// At 1, 2 or 5 times powers of ten.
  [[nodiscard]] std::vector<double> ticks() const {
    std::vector<double> out;
    if (log_) {
      for (double power = std::pow(10, std::floor(low_)); power <= high(); power *= 10) {
        for (const double factor : {1.0, 2.0, 5.0}) out.push_back(power * factor);
      }
    } else {
      double step = std::pow(10, std::floor(std::log10(high_ - low_)));
      if ((high_ - low_) / step < 2.5) step /= 5;
      else if ((high_ - low_) / step < 5) step /= 2;
      const double first = std::ceil(low_ / step);
      for (double i = first; i * step <= high_; ++i) out.push_back(i * step);
    }
    std::erase_if(out, [&](double tick) { return tick < low() || tick > high(); });
    return out;
  }

 private:
  bool log_;
  double low_ = 0;
  double high_ = 1;
};

class Picture {
 public:
  explicit Picture(const std::vector<MeasuredCell>& cells) : panels_(panels_of(cells)) {
    for (const Panel& panel : panels_) {
      for (const Point& point : panel.points) {
        const std::string& policy = point.cell->policy;
        if (std::find(policies_.begin(), policies_.end(), policy) == policies_.end()) {
          policies_.push_back(policy);
        }
      }
    }
  }

  std::string svg() {
    const double rows = std::ceil(static_cast<double>(policies_.size()) / kLegendColumns);
    const double width = kLeft + 3 * kPanel + 2 * kGap + 32;
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"Inter,Helvetica,Arial,sans-serif\" "
        "font-size=\"12\" fill=\"#1f2937\">\n",
        width, kLegendTop + kLegendRow * rows + 16);
    put("<title>Simulated against measured</title>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        "<text x=\"24\" y=\"32\" font-size=\"18\" font-weight=\"600\">Simulated against "
        "measured</text>\n"
        "<text x=\"24\" y=\"52\" fill=\"#4b5563\">Line: equal. Band: within 5 %. Hollow: took "
        "part in the fit.</text>\n");
    for (std::size_t i = 0; i < panels_.size(); ++i) {
      draw_panel(panels_[i], kLeft + static_cast<double>(i) * (kPanel + kGap), i);
    }
    draw_legend();
    return out_ + "</svg>\n";
  }

 private:
  static constexpr std::size_t kLegendColumns = 6;

  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  [[nodiscard]] const char* colour_of(const std::string& policy) const {
    const auto found = std::find(policies_.begin(), policies_.end(), policy);
    return kColours[static_cast<std::size_t>(found - policies_.begin()) % std::size(kColours)];
  }

  void draw_panel(const Panel& panel, double left, std::size_t index) {
    const Axis axis(panel);
    put("<g transform=\"translate({:.1f},{:.1f})\">\n", left, kTop);
    put("<text x=\"0\" y=\"-12\" font-weight=\"600\">{}, {}</text>\n", panel.title, panel.unit);
    put("<clipPath id=\"p{}\"><rect width=\"{}\" height=\"{}\"/></clipPath>\n", index, kPanel,
        kPanel);
    draw_ticks(axis);
    draw_band(axis, index);
    put("<rect width=\"{0}\" height=\"{0}\" fill=\"none\" stroke=\"#9ca3af\"/>\n", kPanel);
    for (const Point& point : panel.points) draw_point(axis, point, panel.unit);
    if (panel.points.empty()) {
      put("<text x=\"{0}\" y=\"{0}\" text-anchor=\"middle\" fill=\"#6b7280\">nothing "
          "measured</text>\n",
          kPanel / 2);
    }
    put("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">measured</text>\n", kPanel / 2,
        kPanel + 40);
    put("<text transform=\"translate(-46,{}) rotate(-90)\" text-anchor=\"middle\">simulated"
        "</text>\n</g>\n",
        kPanel / 2);
  }

  void draw_ticks(const Axis& axis) {
    for (const double tick : axis.ticks()) {
      const double at = axis.at(tick);
      put("<path d=\"M{0:.1f} 0V{1}M0 {2:.1f}H{1}\" stroke=\"#e5e7eb\" fill=\"none\"/>\n", at,
          kPanel, kPanel - at);
      put("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n", at, kPanel + 18,
          tick);
      put("<text x=\"-8\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n", kPanel - at + 4, tick);
    }
  }

  void draw_band(const Axis& axis, std::size_t index) {
    const double low = axis.low();
    const double high = axis.high();
    const auto y = [&](double value) { return kPanel - axis.at(value); };
    put("<g clip-path=\"url(#p{})\">\n<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}"
        "L{:.1f} {:.1f}Z\" fill=\"#dbeafe\" fill-opacity=\"0.7\"/>\n",
        index, axis.at(low), y(low * (1 - kBand)), axis.at(high),
        y(high * (1 - kBand)), axis.at(high), y(high * (1 + kBand)), axis.at(low),
        y(low * (1 + kBand)));
    put("<path d=\"M0 {0}L{0} 0\" stroke=\"#6b7280\"/>\n</g>\n", kPanel);
  }

  void draw_point(const Axis& axis, const Point& point, const std::string& unit) {
    const char* colour = colour_of(point.cell->policy);
    put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\" fill=\"{}\" fill-opacity=\"0.8\" "
        "stroke=\"{}\" stroke-width=\"1.2\"><title>{}: measured {:.4g}, simulated {:.4g} {}"
        "</title></circle>\n",
        axis.at(point.measured), kPanel - axis.at(point.simulated),
        point.cell->role == Role::kFit ? "none" : colour, colour,
        markup_text(point.cell->name()), point.measured, point.simulated, unit);
  }

  void draw_legend() {
    for (std::size_t i = 0; i < policies_.size(); ++i) {
      const double x = kLeft + 190 * static_cast<double>(i % kLegendColumns);
      const double y = kLegendTop + kLegendRow * static_cast<double>(i / kLegendColumns);
      put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\" fill=\"{}\"/>"
          "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
          x, y, colour_of(policies_[i]), x + 12, y + 4, markup_text(policies_[i]));
    }
  }

  std::vector<Panel> panels_;
  std::vector<std::string> policies_;
  std::string out_;
};

}  // namespace

std::string measured_svg(const std::vector<MeasuredCell>& cells) { return Picture(cells).svg(); }

}  // namespace bubblesim::validate
