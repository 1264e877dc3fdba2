#include "sim/validate/measured_summary.hpp"

#include <algorithm>
#include <cmath>

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

const MeasuredCell* worse(const MeasuredCell* one, const MeasuredCell* other) {
  if (one == nullptr) return other;
  return std::abs(other->error()) > std::abs(one->error()) ? other : one;
}

MeasuredSummary summary_of(const std::vector<const MeasuredCell*>& cells) {
  MeasuredSummary out;
  std::vector<double> absolute;
  const MeasuredCell* worst = nullptr;
  for (const MeasuredCell* cell : cells) {
    out.fake = out.fake || cell->fake;
    out.mean += cell->error();
    absolute.push_back(std::abs(cell->error()));
    out.mean_absolute += absolute.back();
    worst = worse(worst, cell);
  }
  std::sort(absolute.begin(), absolute.end());
  const auto count = static_cast<double>(cells.size());
  out.cells = cells.size();
  out.mean /= count;
  out.mean_absolute /= count;
  out.p50 = percentile_of(absolute, 50);
  out.p90 = percentile_of(absolute, 90);
  out.worst = worst->error();
  out.worst_cell = worst->name();
  return out;
}

void summarise(const std::vector<const MeasuredCell*>& cells, MeasuredMetric metric, Role role,
               std::vector<MeasuredSummary>& out) {
  const auto add = [&](const std::string& policy, const std::vector<const MeasuredCell*>& of) {
    MeasuredSummary summary = summary_of(of);
    summary.metric = metric;
    summary.policy = policy;
    summary.role = role;
    if (policy.empty()) summary.aim = measured_aim(metric);
    out.push_back(std::move(summary));
  };
  if (cells.empty()) return;
  add({}, cells);
  std::vector<std::string> policies;
  for (const MeasuredCell* cell : cells) {
    if (std::find(policies.begin(), policies.end(), cell->policy) == policies.end()) {
      policies.push_back(cell->policy);
    }
  }
  for (const std::string& policy : policies) {
    if (policies.size() == 1 && policy == kAlone) continue;  // the same as over all
    std::vector<const MeasuredCell*> own;
    std::copy_if(cells.begin(), cells.end(), std::back_inserter(own),
                 [&](const MeasuredCell* cell) { return cell->policy == policy; });
    add(policy, own);
  }
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
  for (const Role role : {Role::kJudge, Role::kFit}) {
    for (const MeasuredMetric metric : kAllMeasuredMetrics) {
      std::vector<const MeasuredCell*> own;
      for (const MeasuredCell& cell : cells) {
        const bool counts = cell.outcome == Outcome::kPredicted && cell.role == role;
        if (counts && cell.metric == metric) own.push_back(&cell);
      }
      summarise(own, metric, role, out);
    }
  }
  return out;
}

}  // namespace bubblesim::validate
