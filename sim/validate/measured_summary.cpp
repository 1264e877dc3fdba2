#include "sim/validate/measured_summary.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/base/add_once.hpp"
#include "sim/base/nearest_rank.hpp"

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

}  // namespace bubblesim::validate
