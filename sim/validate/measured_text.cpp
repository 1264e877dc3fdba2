#include "sim/validate/measured_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bubblesim::validate {
namespace {

constexpr std::array kTraining = {MeasuredMetric::kSlowdown, MeasuredMetric::kIteration};
constexpr std::array kFiller = {MeasuredMetric::kFillerThroughput,
                                MeasuredMetric::kFillerOfOwnGpu, MeasuredMetric::kP50,
                                MeasuredMetric::kP95, MeasuredMetric::kP99};
constexpr std::size_t kFigureWidth = 27;

struct Title {
  MeasuredMetric metric;
  const char* text;
};
constexpr Title kTitles[] = {{MeasuredMetric::kSlowdown, "slowdown, %"},
                             {MeasuredMetric::kIteration, "iteration, ms"},
                             {MeasuredMetric::kFillerThroughput, "requests/s"},
                             {MeasuredMetric::kFillerOfOwnGpu, "% of own GPU"},
                             {MeasuredMetric::kP50, "p50, ms"},
                             {MeasuredMetric::kP95, "p95, ms"},
                             {MeasuredMetric::kP99, "p99, ms"},
                             {MeasuredMetric::kAloneIteration, "iteration, ms"},
                             {MeasuredMetric::kFillerAlone, "requests/s"}};

std::string title_of(MeasuredMetric metric) {
  for (const Title& title : kTitles) {
    if (title.metric == metric) return title.text;
  }
  return {};
}

// Repetitions that differ by more than the error say nothing about it.
bool is_uncertain(const MeasuredCell& cell) {
  const double error = error_in_points(*cell.metric) ? std::abs(cell.error())
                                                     : std::abs(cell.simulated - cell.measured);
  return cell.repetitions > 1 && cell.measured_high - cell.measured_low > error;
}

std::string figure_text(const MeasuredCell& cell) {
  const char* unit = error_in_points(*cell.metric) ? " " : "%";
  return fmt::format("{:>8.5g}{} {:>8.5g} {:>+7.2f}{}", cell.measured,
                     is_uncertain(cell) ? '~' : ' ', cell.simulated, cell.error(), unit);
}

using Line = std::vector<const MeasuredCell*>;

template <std::size_t N>
std::string figures_text(const Line& line, const std::array<MeasuredMetric, N>& metrics) {
  std::string out;
  for (const MeasuredMetric metric : metrics) {
    const auto found = std::find_if(line.begin(), line.end(), [&](const MeasuredCell* cell) {
      return cell->metric == metric && cell->outcome == Outcome::kPredicted;
    });
    out += fmt::format(" | {:<{}}", found == line.end() ? "-" : figure_text(**found),
                       kFigureWidth - 1);
  }
  return out;
}

template <std::size_t N>
std::string head_text(const char* what, const std::array<MeasuredMetric, N>& metrics) {
  std::string out = fmt::format("  {:<5} {:<28}", "role", what);
  for (const MeasuredMetric metric : metrics) {
    out += fmt::format(" | {:<{}}", title_of(metric), kFigureWidth - 1);
  }
  return out + "\n";
}

// Cells of one config, training's or fillers', in lines of the same policy and filler.
std::vector<Line> lines_of(const Line& cells, bool fillers) {
  std::vector<Line> out;
  for (const MeasuredCell* cell : cells) {
    const bool alone = cell->metric == MeasuredMetric::kAloneIteration ||
                       cell->metric == MeasuredMetric::kFillerAlone;
    if (!cell->metric || alone || cell->filler.empty() == fillers) continue;
    if (out.empty() || out.back().front()->policy != cell->policy ||
        out.back().front()->filler != cell->filler) {
      out.emplace_back();
    }
    out.back().push_back(cell);
  }
  return out;
}

std::string alone_text(const Line& cells) {
  std::string out;
  for (const MeasuredCell* cell : cells) {
    const bool alone = cell->metric == MeasuredMetric::kAloneIteration ||
                       cell->metric == MeasuredMetric::kFillerAlone;
    if (!alone || cell->outcome != Outcome::kPredicted) continue;
    out += fmt::format("  {:<5} alone: {:<21} | {} {}\n", role_name(cell->role),
                       cell->filler.empty() ? "training" : cell->filler, figure_text(*cell),
                       title_of(*cell->metric));
  }
  return out;
}

template <std::size_t N>
std::string lines_text(const std::vector<Line>& lines, const char* what,
                       const std::array<MeasuredMetric, N>& metrics) {
  if (lines.empty()) return {};
  std::string out = head_text(what, metrics);
  for (const Line& line : lines) {
    const MeasuredCell& first = *line.front();
    const std::string name =
        first.filler.empty() ? first.policy : first.policy + " / " + first.filler;
    std::string text = fmt::format("  {:<5} {:<28}{}", role_name(first.role), name,
                                   figures_text(line, metrics));
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  return out;
}

// A line a policy and filler with the metrics in question.
std::string named_text(const Line& cells) {
  std::string out;
  std::string last;
  for (const MeasuredCell* cell : cells) {
    const std::string name = cell->name();
    const bool goes_on = name == last && cell->metric;
    if (!goes_on) out += (out.empty() ? "    " : "\n    ") + name;
    if (cell->metric) out += (goes_on ? ", " : ": ") + std::string(metric_name(*cell->metric));
    last = name;
  }
  return out + "\n";
}

}  // namespace

std::string measured_cells_text(const std::vector<MeasuredCell>& cells) {
  std::string out;
  for (std::size_t i = 0; i < cells.size();) {
    const std::string& config = cells[i].config;
    Line own;
    std::size_t repetitions = 0;
    for (; i < cells.size() && cells[i].config == config; ++i) {
      own.push_back(&cells[i]);
      repetitions = std::max(repetitions, cells[i].repetitions);
    }
    out += fmt::format("{}{} (measured {} time{}; each: measured, simulated, error)\n",
                       out.empty() ? "" : "\n", config, repetitions, repetitions == 1 ? "" : "s");
    out += alone_text(own);
    out += lines_text(lines_of(own, false), "training under", kTraining);
    out += lines_text(lines_of(own, true), "filler under", kFiller);
  }
  return out;
}

std::string measured_missing_text(const std::vector<MeasuredCell>& cells) {
  std::string out;
  for (const Outcome outcome : {Outcome::kFailed, Outcome::kStated}) {
    std::vector<std::string> reasons;
    for (const MeasuredCell& cell : cells) {
      const bool seen = std::find(reasons.begin(), reasons.end(), cell.note) != reasons.end();
      if (cell.outcome == outcome && !seen) reasons.push_back(cell.note);
    }
    for (const std::string& reason : reasons) {
      out += fmt::format("  {}{}:\n", outcome == Outcome::kFailed ? "FAILED: " : "", reason);
      Line own;
      for (const MeasuredCell& cell : cells) {
        if (cell.outcome == outcome && cell.note == reason) own.push_back(&cell);
      }
      out += named_text(own);
    }
  }
  return out.empty() ? out : "not judged\n" + out;
}

std::string measured_summary_text(const std::vector<MeasuredSummary>& summaries) {
  std::string out = fmt::format("{:<5} {:<18} {:<16} {:>4} {:>9} {:>8} {:>8} {:>8} {:>9}  {}\n",
                                "role", "metric", "policy", "n", "|error|", "bias", "p50", "p90",
                                "worst", "in");
  for (const MeasuredSummary& it : summaries) {
    out += fmt::format("{:<5} {:<18} {:<16} {:>4} {:>9.2f} {:>+8.2f} {:>8.2f} {:>8.2f} {:>+9.2f}"
                       "  {:<6} worst: {}\n",
                       role_name(it.role), metric_name(it.metric),
                       it.policy.empty() ? "all" : it.policy, it.cells, it.mean_absolute, it.mean,
                       it.p50, it.p90, it.worst, error_unit(it.metric), it.worst_cell);
  }
  out += "\naims (mean absolute error of judged cells)\n";
  for (const MeasuredSummary& it : summaries) {
    if (!it.aim || it.role != Role::kJudge) continue;
    out += fmt::format("{:<18} <= {:>2.0f} {:<6} {}: {:.2f}   beside: {}\n",
                       metric_name(it.metric), it.aim->bound, error_unit(it.metric),
                       it.fake  ? "NOT JUDGED (a fake GPU measures nothing)"
                       : it.met() ? "met"
                                  : "MISSED",
                       it.mean_absolute, it.aim->source);
  }
  return out;
}

std::string measured_order_text(const std::vector<MeasuredOrder>& orders) {
  std::string out = "order of the policies, best first (>: apart, =: tied)\n";
  for (const MeasuredOrder& it : orders) {
    const std::string name =
        it.config + ", " + (it.filler.empty() ? "training throughput" : it.filler + " throughput");
    out += fmt::format("{}: {} of {} pairs wrong, {} tied; Kendall {:+.2f}\n", name, it.wrong,
                       it.compared, it.ties, it.kendall());
    out += fmt::format("  measured:  {}\n  simulated: {}\n", it.measured, it.simulated);
  }
  return out;
}

}  // namespace bubblesim::validate
