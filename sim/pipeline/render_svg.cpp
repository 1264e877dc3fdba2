// Draws the table. All lengths in pixels. Looks like the timelines of traces/inspect.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "sim/pipeline/render.hpp"
#include "sim/text/markup_text.hpp"

namespace bubblesim::pipeline {
namespace {

constexpr double kLeft = 96;     // of the plot: the ranks' names stand before it
constexpr double kRight = 24;
constexpr double kTop = 84;
constexpr double kLegend = 48;
constexpr double kMinWidth = 480;
constexpr double kMaxWidth = 4000;
constexpr double kWantedUnit = 22;   // of the shortest action
constexpr double kMinLabel = 6.2;    // a digit at 10 px
constexpr double kPalest = 0.45;     // opacity of a rank's last stage

struct Key {
  ActionKind kind;
  const char* name;
  const char* colour;
};

// Dark enough for white figures; told apart in grey too.
constexpr Key kKeys[] = {{ActionKind::kForward, "forward", "#2563eb"},
                         {ActionKind::kBackward, "backward", "#15803d"},
                         {ActionKind::kInputGrad, "input gradient", "#0f8f8f"},
                         {ActionKind::kWeightGrad, "weight gradient", "#b45309"}};

const char* colour_of(ActionKind kind) {
  for (const Key& key : kKeys) {
    if (key.kind == kind) return key.colour;
  }
  return "#6b7280";
}

class Picture {
 public:
  Picture(const Schedule& schedule, const Execution& execution)
      : schedule_(schedule), execution_(execution) {
    std::int64_t shortest = std::max<std::int64_t>(execution.makespan, 1);
    for (const auto& spans : execution.spans) {
      for (const Span& span : spans) {
        if (span.end > span.start) shortest = std::min(shortest, span.end - span.start);
      }
    }
    const double length = static_cast<double>(std::max<std::int64_t>(execution.makespan, 1));
    plot_ = std::clamp(kWantedUnit * length / static_cast<double>(shortest), kMinWidth,
                       kMaxWidth);
    scale_ = plot_ / length;
    row_ = schedule.ranks <= 32 ? 24 : 14;
    number_stages();
  }

  std::string svg() {
    const double bottom = kTop + (row_ + 3) * schedule_.ranks;
    draw_head(bottom + kLegend);
    for (std::uint32_t rank = 0; rank < schedule_.ranks; ++rank) draw_rank(rank);
    draw_legend(bottom + 12);
    return out_ + "</svg>\n";
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  // Which of its rank's stages a stage is, and of how many.
  void number_stages() {
    std::vector<std::uint32_t> seen(schedule_.ranks);
    for (const std::uint32_t rank : schedule_.rank_of_stage) {
      number_.push_back(seen[rank]++);
      most_ = std::max(most_, seen[rank]);
    }
  }

  [[nodiscard]] double opacity(std::uint32_t stage) const {
    if (most_ <= 1) return 1;
    return 1 - (1 - kPalest) * number_[stage] / (most_ - 1);
  }

  void draw_head(double height) {
    const double width = kLeft + plot_ + kRight;
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"Inter,Helvetica,Arial,sans-serif\" "
        "font-size=\"12\" fill=\"#1f2937\">\n",
        width, height);
    const std::string title = markup_text(schedule_.name);
    put("<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n", title);
    put("<text x=\"24\" y=\"32\" font-size=\"18\" font-weight=\"600\">{}</text>\n", title);
    put("<text x=\"24\" y=\"52\" fill=\"#4b5563\">{} ranks \u00b7 {} stages \u00b7 {} "
        "micro-batches \u00b7 length {}</text>\n",
        schedule_.ranks, schedule_.stages, schedule_.micro_batches, execution_.makespan);
    put("<text x=\"24\" y=\"70\" fill=\"#4b5563\">bubble {:.1f} % of the makespan, {:.1f} % of "
        "the longest span</text>\n",
        100 * execution_.makespan_bubble_fraction(), 100 * execution_.span_bubble_fraction());
  }

  void draw_rank(std::uint32_t rank) {
    const double y = kTop + (row_ + 3) * rank;
    put("<text x=\"24\" y=\"{:.1f}\">rank {}</text>\n", y + row_ / 2 + 4, rank);
    put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "fill=\"#eef1f5\"/>\n",
        kLeft, y, plot_, row_);
    for (std::size_t i = 0; i < schedule_.actions[rank].size(); ++i) {
      draw_action(schedule_.actions[rank][i], execution_.spans[rank][i], y);
    }
  }

  void draw_action(const Action& action, const Span& span, double y) {
    const double x = kLeft + scale_ * static_cast<double>(span.start);
    const double width = scale_ * static_cast<double>(span.end - span.start);
    if (action.kind != ActionKind::kOverlapped) {
      return draw_box(action.kind, action.stage, action.micro_batch, x, width, y, row_);
    }
    draw_box(ActionKind::kForward, action.stage, action.micro_batch, x, width, y, row_ / 2);
    draw_box(ActionKind::kBackward, action.other_stage, action.other_micro_batch, x, width,
             y + row_ / 2, row_ / 2);
  }

  void draw_box(ActionKind kind, std::uint32_t stage, std::uint32_t micro_batch, double x,
                double width, double y, double height) {
    put("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\" "
        "fill-opacity=\"{:.2f}\" stroke=\"#ffffff\" stroke-width=\"0.6\"/>",
        x, y, width, height, colour_of(kind), opacity(stage));
    const std::string label = std::to_string(micro_batch);
    if (kMinLabel * static_cast<double>(label.size()) + 2 <= width) {
      const double size = std::min(10.0, height - 2);
      put("<text x=\"{:.2f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"{:.0f}\" "
          "fill=\"{}\">{}</text>",
          x + width / 2, y + height / 2 + size * 0.36, size,
          opacity(stage) > 0.7 ? "#ffffff" : "#111827", label);
    }
    out_ += '\n';
  }

  [[nodiscard]] bool uses(ActionKind kind) const {
    for (const auto& list : schedule_.actions) {
      for (const Action& action : list) {
        if (action.kind == kind) return true;
        const bool half = kind == ActionKind::kForward || kind == ActionKind::kBackward;
        if (half && action.kind == ActionKind::kOverlapped) return true;
      }
    }
    return false;
  }

  void draw_legend(double y) {
    double x = kLeft;
    for (const Key& key : kKeys) {
      if (!uses(key.kind)) continue;
      put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" rx=\"2\" "
          "fill=\"{}\"/><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
          x, y, key.colour, x + 18, y + 10, key.name);
      x += 40 + 6.6 * static_cast<double>(std::string_view(key.name).size());
    }
    if (most_ > 1) {
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#4b5563\">paler: a later stage of the "
          "rank</text>\n",
          x, y + 10);
    }
  }

  const Schedule& schedule_;
  const Execution& execution_;
  double plot_ = 0;
  double scale_ = 0;
  double row_ = 0;
  std::vector<std::uint32_t> number_;
  std::uint32_t most_ = 1;
  std::string out_;
};

}  // namespace

std::string render_svg(const Schedule& schedule, const Execution& execution) {
  return Picture(schedule, execution).svg();
}

}  // namespace bubblesim::pipeline
