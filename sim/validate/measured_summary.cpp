#include "sim/validate/measured_summary.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "sim/base/add_once.hpp"
#include "sim/base/json.hpp"
#include "sim/base/nearest_rank.hpp"
#include "sim/text/escaped_text.hpp"

namespace bubblesim::validate {
namespace {

constexpr MeasuredAim kMeasuredAims[] = {
    {MeasuredMetric::kSlowdown, 2,
     "PipeFill accepts a slowdown below 2 %: errors must be smaller than what is decided by"},
    {MeasuredMetric::kFillerThroughput, 5,
     "Parallax: 4.33 % under time slicing, 6.12 % under MPS"},
    {MeasuredMetric::kP95, 10, "LLMServingSim 2: -2.4 to +0.6 %, a server alone on its GPU"},
    {MeasuredMetric::kAloneIteration, 2, "Lumos: 3.3 %"}};

using Cells = std::vector<const MeasuredCell*>;

/// Sums, not yet means.
void add_error(MeasuredSummary& out, const MeasuredCell& cell) {
  const double error = cell.error();
  ++out.rows;
  out.mean_absolute += std::abs(error);
  out.bias += error;
  if (out.rows > 1 && std::abs(error) <= std::abs(out.worst)) return;
  out.worst = error;
  out.worst_label = cell.name();
}

MeasuredSummary summary_of(const Cells& cells, const std::string& policy) {
  MeasuredSummary out;
  std::vector<double> absolute;
  for (const MeasuredCell* cell : cells) {
    out.fake = out.fake || cell->fake;
    add_error(out, *cell);
    absolute.push_back(std::abs(cell->error()));
  }
  out.mean_absolute /= static_cast<double>(out.rows);
  out.bias /= static_cast<double>(out.rows);
  std::sort(absolute.begin(), absolute.end());
  out.metric = *cells.front()->metric;
  out.role = cells.front()->role;
  out.policy = policy;
  out.p50 = percentile_of(absolute, 50);
  out.p90 = percentile_of(absolute, 90);
  if (policy.empty()) out.aim = measured_aim(out.metric);
  return out;
}

/// Over all, and by policy; nothing where there is no cell.
void add_summaries(const Cells& cells, std::vector<MeasuredSummary>& out) {
  if (cells.empty()) return;
  out.push_back(summary_of(cells, {}));
  std::vector<std::string> policies;
  for (const MeasuredCell* cell : cells) add_once(policies, cell->policy);
  if (policies.size() == 1 && policies.front() == kAlone) return;  // the same as over all
  for (const std::string& policy : policies) {
    Cells own;
    std::copy_if(cells.begin(), cells.end(), std::back_inserter(own),
                 [&](const MeasuredCell* cell) { return cell->policy == policy; });
    out.push_back(summary_of(own, policy));
  }
}

// Iterations are better short, throughputs are better large.
bool better(const MeasuredCell& cell, double left, double right) {
  return cell.metric == MeasuredMetric::kIteration ? left < right : left > right;
}

bool is_tie(const MeasuredCell& first, const MeasuredCell& second, double tie) {
  const bool meet =
      first.measured_low <= second.measured_high && second.measured_low <= first.measured_high;
  const double larger = std::max(std::abs(first.measured), std::abs(second.measured));
  return meet || std::abs(first.measured - second.measured) <= tie * larger;
}

template <class Value, class Tie>
std::string chain(Cells cells, const Value& value, const Tie& tie) {
  std::stable_sort(cells.begin(), cells.end(), [&](const MeasuredCell* a, const MeasuredCell* b) {
    return better(*a, value(*a), value(*b));
  });
  std::string out;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out += tie(*cells[i - 1], *cells[i]) ? " = " : " > ";
    out += cells[i]->policy;
  }
  return out;
}

MeasuredOrder order_of(const Cells& cells, double tie) {
  MeasuredOrder out;
  out.config = cells.front()->config;
  out.filler = cells.front()->filler;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (std::size_t j = i + 1; j < cells.size(); ++j) {
      const MeasuredCell& earlier = *cells[i];
      const MeasuredCell& later = *cells[j];
      if (is_tie(earlier, later, tie)) {
        ++out.ties;
        continue;
      }
      ++out.compared;
      const bool first = better(earlier, earlier.measured, later.measured);
      const bool right = first ? better(earlier, earlier.simulated, later.simulated)
                               : better(earlier, later.simulated, earlier.simulated);
      if (!right) ++out.wrong;
    }
  }
  out.measured = chain(cells, [](const MeasuredCell& cell) { return cell.measured; },
                       [&](const auto& a, const auto& b) { return is_tie(a, b, tie); });
  out.simulated = chain(cells, [](const MeasuredCell& cell) { return cell.simulated; },
                        [](const auto& a, const auto& b) { return a.simulated == b.simulated; });
  return out;
}

}  // namespace

std::optional<MeasuredAim> measured_aim(MeasuredMetric metric) {
  for (const MeasuredAim& aim : kMeasuredAims) {
    if (aim.metric == metric) return aim;
  }
  return std::nullopt;
}

std::vector<MeasuredSummary> summarise_measured(const std::vector<MeasuredCell>& cells) {
  std::vector<MeasuredSummary> out;
  for (const RowRole role : {RowRole::kJudge, RowRole::kFit}) {
    for (const MeasuredMetric metric : kAllMeasuredMetrics) {
      Cells own;
      for (const MeasuredCell& cell : cells) {
        const bool counts = cell.outcome == RowOutcome::kPredicted && cell.role == role;
        if (counts && cell.metric == metric) own.push_back(&cell);
      }
      add_summaries(own, out);
    }
  }
  return out;
}

double MeasuredOrder::kendall() const {
  if (compared == 0) return 1;
  return 1 - 2 * static_cast<double>(wrong) / static_cast<double>(compared);
}

std::vector<MeasuredOrder> order_measured(const std::vector<MeasuredCell>& cells, double tie) {
  std::vector<Cells> groups;
  for (const MeasuredCell& cell : cells) {
    const bool ordered = cell.metric == MeasuredMetric::kIteration ||
                         cell.metric == MeasuredMetric::kFillerThroughput;
    if (!ordered || cell.outcome != RowOutcome::kPredicted || cell.role != RowRole::kJudge) {
      continue;
    }
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Cells& cells_of_group) {
      return cells_of_group.front()->config == cell.config &&
             cells_of_group.front()->filler == cell.filler;
    });
    if (group == groups.end()) groups.push_back({&cell});
    else group->push_back(&cell);
  }
  std::vector<MeasuredOrder> out;
  for (const Cells& group : groups) {
    if (group.size() > 1) out.push_back(order_of(group, tie));
  }
  return out;
}

namespace {

constexpr std::array kTraining = {MeasuredMetric::kSlowdown, MeasuredMetric::kIteration};
constexpr std::array kFiller = {MeasuredMetric::kFillerThroughput,
                                MeasuredMetric::kFillerOfOwnGpu, MeasuredMetric::kP50,
                                MeasuredMetric::kP95, MeasuredMetric::kP99};
constexpr std::size_t kFigureWidth = 27;

std::string_view outcome_name(RowOutcome outcome) {
  if (outcome == RowOutcome::kPredicted) return "predicted";
  return outcome == RowOutcome::kStated ? "stated" : "failed";
}

bool is_alone(const MeasuredCell& cell) {
  return cell.metric == MeasuredMetric::kAloneIteration ||
         cell.metric == MeasuredMetric::kFillerAlone;
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

std::string figures_text(const Line& line, std::span<const MeasuredMetric> metrics) {
  std::string out;
  for (const MeasuredMetric metric : metrics) {
    const auto found = std::find_if(line.begin(), line.end(), [&](const MeasuredCell* cell) {
      return cell->metric == metric && cell->outcome == RowOutcome::kPredicted;
    });
    out += fmt::format(" | {:<{}}", found == line.end() ? "-" : figure_text(**found),
                       kFigureWidth - 1);
  }
  return out;
}

std::string head_text(const char* what, std::span<const MeasuredMetric> metrics) {
  std::string out = fmt::format("  {:<5} {:<28}", "role", what);
  for (const MeasuredMetric metric : metrics) {
    out += fmt::format(" | {:<{}}", metric_title(metric), kFigureWidth - 1);
  }
  return out + "\n";
}

// Cells of one config, training's or fillers', in lines of the same policy and filler.
std::vector<Line> lines_of(const Line& cells, bool fillers) {
  std::vector<Line> out;
  for (const MeasuredCell* cell : cells) {
    if (!cell->metric || is_alone(*cell) || cell->filler.empty() == fillers) continue;
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
    if (!is_alone(*cell) || cell->outcome != RowOutcome::kPredicted) continue;
    out += fmt::format("  {:<5} alone: {:<21} | {} {}\n", role_name(cell->role),
                       cell->filler.empty() ? "training" : cell->filler, figure_text(*cell),
                       metric_title(*cell->metric));
  }
  return out;
}

std::string lines_text(const std::vector<Line>& lines, const char* what,
                       std::span<const MeasuredMetric> metrics) {
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

using Texts = std::vector<std::string>;

std::string joined(const Texts& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : "; ") + text;
  return out.empty() ? "nothing" : out;
}

std::string_view metric_of(const MeasuredCell& cell) {
  return cell.metric ? metric_name(*cell.metric) : std::string_view{};
}

Json cell_json(const MeasuredCell& cell) {
  Json out = {{"role", role_name(cell.role)},
              {"config", cell.config},
              {"policy", cell.policy},
              {"filler", cell.filler},
              {"metric", metric_of(cell)},
              {"outcome", outcome_name(cell.outcome)}};
  if (!cell.note.empty()) out["note"] = cell.note;
  if (cell.outcome != RowOutcome::kPredicted) return out;
  out["unit"] = metric_unit(*cell.metric);
  out["measured"] = cell.measured;
  out["measured_low"] = cell.measured_low;
  out["measured_high"] = cell.measured_high;
  out["repetitions"] = cell.repetitions;
  out["simulated"] = cell.simulated;
  out["error"] = cell.error();
  out["error_unit"] = error_unit(*cell.metric);
  return out;
}

Json summary_json(const MeasuredSummary& summary) {
  Json out = {{"role", role_name(summary.role)},
              {"metric", metric_name(summary.metric)},
              {"policy", summary.policy},
              {"cells", summary.rows},
              {"error_unit", error_unit(summary.metric)},
              {"mean_absolute_error", summary.mean_absolute},
              {"mean_error", summary.bias},
              {"p50_absolute_error", summary.p50},
              {"p90_absolute_error", summary.p90},
              {"worst_error", summary.worst},
              {"worst_cell", summary.worst_label},
              {"aim", nullptr}};
  if (summary.aim) {
    out["aim"] = {{"bound", summary.aim->bound},
                  {"met", summary.met()},
                  {"judged", summary.role == RowRole::kJudge && !summary.fake},
                  {"source", summary.aim->source}};
  }
  return out;
}

Json order_json(const MeasuredOrder& order) {
  return {{"config", order.config},     {"filler", order.filler},      {"compared", order.compared},
          {"wrong", order.wrong},       {"ties", order.ties},          {"kendall", order.kendall()},
          {"measured", order.measured}, {"simulated", order.simulated}};
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
    const bool uncertain = std::ranges::any_of(own, [](const MeasuredCell* cell) {
      return cell->outcome == RowOutcome::kPredicted && is_uncertain(*cell);
    });
    out += fmt::format("{}{} (measured {} time{}; each: measured, simulated, error{})\n",
                       out.empty() ? "" : "\n", config, repetitions, repetitions == 1 ? "" : "s",
                       uncertain ? "; ~: measurements differ by more than the error" : "");
    out += alone_text(own);
    out += lines_text(lines_of(own, false), "training under", kTraining);
    out += lines_text(lines_of(own, true), "filler under", kFiller);
  }
  return out;
}

std::string measured_missing_text(const std::vector<MeasuredCell>& cells) {
  std::string out;
  for (const RowOutcome outcome : {RowOutcome::kFailed, RowOutcome::kStated}) {
    std::vector<std::string> reasons;
    for (const MeasuredCell& cell : cells) {
      if (cell.outcome == outcome) add_once(reasons, cell.note);
    }
    for (const std::string& reason : reasons) {
      out += fmt::format("  {}{}:\n", outcome == RowOutcome::kFailed ? "FAILED: " : "", reason);
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
  for (const MeasuredSummary& summary : summaries) {
    out += fmt::format(
        "{:<5} {:<18} {:<16} {:>4} {:>9.2f} {:>+8.2f} {:>8.2f} {:>8.2f} {:>+9.2f}"
        "  {:<6} worst: {}\n",
        role_name(summary.role), metric_name(summary.metric),
        summary.policy.empty() ? "all" : summary.policy, summary.rows, summary.mean_absolute,
        summary.bias, summary.p50, summary.p90, summary.worst, error_unit(summary.metric),
        summary.worst_label);
  }
  out += "\naims (mean absolute error of judged cells)\n";
  for (const MeasuredSummary& summary : summaries) {
    if (!summary.aim || summary.role != RowRole::kJudge) continue;
    out += fmt::format("{:<18} <= {:>2.0f} {:<6} {}: {:.2f}   beside: {}\n",
                       metric_name(summary.metric), summary.aim->bound, error_unit(summary.metric),
                       summary.fake    ? "NOT JUDGED (a fake GPU measures nothing)"
                       : summary.met() ? "met"
                                       : "MISSED",
                       summary.mean_absolute, summary.aim->source);
  }
  return out;
}

std::string measured_order_text(const std::vector<MeasuredOrder>& orders) {
  std::string out = "order of the policies, best first (>: apart, =: tied)\n";
  for (const MeasuredOrder& order : orders) {
    const std::string name =
        order.config + ", " +
        (order.filler.empty() ? "training throughput" : order.filler + " throughput");
    out += fmt::format("{}: {} of {} pairs wrong, {} tied; Kendall {:+.2f}\n", name, order.wrong,
                       order.compared, order.ties, order.kendall());
    out += fmt::format("  measured:  {}\n  simulated: {}\n", order.measured, order.simulated);
  }
  return out;
}

std::string measured_sides_text(const std::vector<MatchedReports>& matched) {
  Texts simulated;
  Texts measured;
  bool run_was_measured = false;
  bool measured_was_run = false;
  bool fake = false;
  for (const MatchedReports& config : matched) {
    for (const ReportFigures* report : config.simulated) {
      add_once(simulated, report->device);
      run_was_measured = run_was_measured || !report->measured.empty();
    }
    for (const ReportFigures* report : config.measured) {
      // Dates differ from round to round: place and device say enough here.
      const std::string place = report->measured.substr(0, report->measured.find(','));
      add_once(measured, place.empty() ? report->device : report->device + " (" + place + ")");
      measured_was_run = measured_was_run || report->measured.empty();
      fake = fake || is_fake(*report);
    }
  }
  std::string out = "simulated: " + joined(simulated) + "\nmeasured:  " + joined(measured) + "\n";
  if (run_was_measured) out += "note: RUN holds reports that were measured, not simulated\n";
  if (measured_was_run) out += "note: MEASURED holds reports that were simulated, not measured\n";
  if (fake) out += "note: MEASURED holds reports of a fake GPU: they measure nothing\n";
  return out;
}

std::string measured_csv(const std::vector<MeasuredCell>& cells) {
  std::string out =
      "role,config,policy,filler,metric,unit,outcome,measured,measured_low,measured_high,"
      "repetitions,simulated,error,error_unit,note\n";
  for (const MeasuredCell& cell : cells) {
    out += role_name(cell.role);
    for (const std::string* text : {&cell.config, &cell.policy, &cell.filler}) {
      out += ',';
      append_csv_cell(out, *text);
    }
    out += fmt::format(",{},{},{},", metric_of(cell),
                       cell.metric ? metric_unit(*cell.metric) : std::string_view{},
                       outcome_name(cell.outcome));
    if (cell.outcome == RowOutcome::kPredicted) {
      out += fmt::format("{},{},{},{},{},{},{},", cell.measured, cell.measured_low,
                         cell.measured_high, cell.repetitions, cell.simulated, cell.error(),
                         error_unit(*cell.metric));
    } else {
      out += ",,,,,,,";
    }
    append_csv_cell(out, cell.note);
    out += '\n';
  }
  return out;
}

std::string measured_json(const std::vector<MeasuredCell>& cells,
                          const std::vector<MeasuredSummary>& summaries,
                          const std::vector<MeasuredOrder>& orders) {
  Json out = {{"cells", Json::array()}, {"summary", Json::array()}, {"order", Json::array()}};
  for (const MeasuredCell& cell : cells) out["cells"].push_back(cell_json(cell));
  for (const MeasuredSummary& summary : summaries) out["summary"].push_back(summary_json(summary));
  for (const MeasuredOrder& order : orders) out["order"].push_back(order_json(order));
  return indented_text(out, 1) + "\n";
}

}  // namespace bubblesim::validate
