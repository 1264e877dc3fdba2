#include "sim/pipeline/render.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/base/json.hpp"
#include "sim/text/escaped_text.hpp"

namespace bubblesim::pipeline {
namespace {

std::int64_t unit_of(const Execution& execution) {
  std::int64_t unit = execution.makespan;
  for (const auto& spans : execution.spans) {
    for (const Span& span : spans) unit = std::gcd(std::gcd(unit, span.start), span.end);
  }
  return std::max<std::int64_t>(unit, 1);
}

bool one_stage_each(const Schedule& schedule) {
  std::vector<std::uint32_t> stages(schedule.ranks);
  for (const std::uint32_t rank : schedule.rank_of_stage) ++stages[rank];
  return std::all_of(stages.begin(), stages.end(), [](auto count) { return count <= 1; });
}

std::string label_of(const Action& action, bool short_form) {
  if (action.kind == ActionKind::kOverlapped) {
    return action_text(forward(action.stage, action.micro_batch)) + "&" +
           action_text(backward(action.other_stage, action.other_micro_batch));
  }
  if (!short_form) return action_text(action);
  return letter(action.kind) + std::to_string(action.micro_batch);
}

class Grid {
 public:
  Grid(const Schedule& schedule, const Execution& execution)
      : schedule_(schedule),
        execution_(execution),
        unit_(unit_of(execution)),
        columns_(std::min<std::size_t>(static_cast<std::size_t>(execution.makespan / unit_),
                                       kMaxGridColumns)),
        short_form_(one_stage_each(schedule)) {
    for (std::uint32_t rank = 0; rank < schedule.ranks; ++rank) measure(rank);
  }

  std::string text() const {
    const std::size_t digits = std::to_string(schedule_.ranks - 1).size();
    std::string out;
    for (std::uint32_t rank = 0; rank < schedule_.ranks; ++rank) {
      const std::string number = std::to_string(rank);
      out += "rank " + std::string(digits - number.size(), ' ') + number + "  " + row(rank);
      while (out.back() == ' ') out.pop_back();
      out += '\n';
    }
    if (static_cast<std::int64_t>(columns_) * unit_ < execution_.makespan) {
      out += "shown up to time " + std::to_string(static_cast<std::int64_t>(columns_) * unit_) +
             " of " + std::to_string(execution_.makespan) + "\n";
    }
    return out;
  }

 private:
  // Columns are as wide as the widest label needs, spread over the columns of its action.
  void measure(std::uint32_t rank) {
    for (std::size_t i = 0; i < schedule_.actions[rank].size(); ++i) {
      const Span& span = execution_.spans[rank][i];
      const std::size_t columns = static_cast<std::size_t>((span.end - span.start) / unit_);
      const std::size_t size = label_of(schedule_.actions[rank][i], short_form_).size() + 1;
      if (columns > 0) width_ = std::max(width_, (size + columns - 1) / columns);
    }
  }

  [[nodiscard]] std::string row(std::uint32_t rank) const {
    std::string out;
    for (std::size_t i = 0; i < schedule_.actions[rank].size(); ++i) {
      const Span& span = execution_.spans[rank][i];
      const auto start = static_cast<std::size_t>(span.start / unit_);
      const auto end = static_cast<std::size_t>(span.end / unit_);
      if (end > columns_) break;
      idle_until(out, start * width_);
      if (end == start) continue;
      out += label_of(schedule_.actions[rank][i], short_form_);
      if (out.size() + 1 < end * width_) out.append(end * width_ - 1 - out.size(), '-');
      out.append(end * width_ - out.size(), ' ');
    }
    idle_until(out, columns_ * width_);
    return out;
  }

  void idle_until(std::string& out, std::size_t end) const {
    while (out.size() < end) out += "." + std::string(width_ - 1, ' ');
  }

  const Schedule& schedule_;
  const Execution& execution_;
  std::int64_t unit_;
  std::size_t columns_;
  bool short_form_;
  std::size_t width_ = 1;
};

}  // namespace

std::string render_grid(const Schedule& schedule, const Execution& execution) {
  return Grid(schedule, execution).text();
}

namespace {

Json times_json(const UnitTimes& times) {
  Json json = {{"forward", times.every_stage.forward},
               {"input_grad", times.every_stage.input_grad},
               {"weight_grad", times.every_stage.weight_grad},
               {"p2p", times.p2p}};
  if (times.backward) json["backward"] = *times.backward;
  if (times.overlapped) json["overlapped"] = *times.overlapped;
  if (times.by_stage.empty()) return json;
  Json stages = Json::array();
  for (const StageTimes& stage : times.by_stage) {
    stages.push_back({{"forward", stage.forward},
                      {"input_grad", stage.input_grad},
                      {"weight_grad", stage.weight_grad}});
  }
  json["by_stage"] = std::move(stages);
  return json;
}

Json stages_json(const Schedule& schedule, const StageGraph& graph) {
  Json stages = Json::array();
  for (std::uint32_t stage = 0; stage < graph.size(); ++stage) {
    const StageNode& node = graph.stages[stage];
    stages.push_back({{"rank", schedule.rank_of_stage[stage]},
                      {"producers", node.producers},
                      {"first_micro_batch", node.first_micro_batch},
                      {"micro_batches", node.micro_batches},
                      {"micro_batch_size", node.micro_batch_size}});
  }
  return stages;
}

Json rank_json(const Schedule& schedule, const Execution& execution, std::uint32_t rank) {
  Json actions = Json::array();
  for (std::size_t i = 0; i < schedule.actions[rank].size(); ++i) {
    const Span& span = execution.spans[rank][i];
    actions.push_back({{"action", action_text(schedule.actions[rank][i])},
                       {"start", span.start},
                       {"end", span.end}});
  }
  return {{"busy", execution.busy[rank]},
          {"idle", execution.idle[rank]},
          {"peak_activations", execution.peak_activations[rank]},
          {"actions", std::move(actions)}};
}

}  // namespace

std::string render_json(const Schedule& schedule, const StageGraph& graph,
                        const UnitTimes& times, const Execution& execution) {
  Json json = {{"format", "bubblesim.schedule/1"},
               {"name", schedule.name},
               {"ranks", schedule.ranks},
               {"micro_batches", schedule.micro_batches},
               {"times", times_json(times)},
               {"stages", stages_json(schedule, graph)},
               {"makespan", execution.makespan},
               {"longest_span", execution.longest_span},
               {"span_bubble", execution.span_bubble()},
               {"span_bubble_fraction", execution.span_bubble_fraction()},
               {"makespan_bubble_fraction", execution.makespan_bubble_fraction()},
               {"contiguous_fraction", execution.contiguous_fraction()}};
  Json ranks = Json::array();
  for (std::uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    ranks.push_back(rank_json(schedule, execution, rank));
  }
  json["by_rank"] = std::move(ranks);
  Json bubbles = Json::array();
  for (const ScheduleBubble& bubble : execution.bubbles) {
    bubbles.push_back({{"rank", bubble.rank},
                       {"start", bubble.start},
                       {"length", bubble.length},
                       {"kind", bubble_kind_name(bubble.kind)}});
  }
  json["bubbles"] = std::move(bubbles);
  return indented_text(json, 1) + "\n";
}

namespace {

// Draws the table. All lengths in pixels. Looks like the timelines of traces/inspect.

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
