#include "sim/validate/compare_measured.hpp"

#include <algorithm>
#include <utility>

#include "sim/validate/measured_figures.hpp"

namespace bubblesim::validate {
namespace {

struct MetricText {
  std::string_view name;
  std::string_view unit;
};

constexpr std::array<MetricText, kAllMeasuredMetrics.size()> kTexts = {{
    {"training_slowdown", "%"}, {"training_iteration", "ms"}, {"filler_throughput", "1/s"},
    {"filler_of_own_gpu", "%"}, {"latency_p50", "ms"}, {"latency_p95", "ms"},
    {"latency_p99", "ms"}, {"alone_iteration", "ms"}, {"filler_alone", "1/s"}}};

class Comparer {
 public:
  Comparer(const MatchedReports& config, const MeasuredRoles& roles,
           std::vector<MeasuredCell>& cells)
      : config_(config), roles_(roles), cells_(cells), names_(config) {}

  void compare() {
    if (config_.measured.empty()) return absent({}, {}, Outcome::kStated, "not measured");
    if (config_.simulated.empty()) return absent({}, {}, Outcome::kFailed, "not simulated");
    compare_figure({kAlone, {}, MeasuredMetric::kAloneIteration});
    for (const std::string& filler : names_.fillers_alone()) {
      compare_figure({kAlone, filler, MeasuredMetric::kFillerAlone});
    }
    for (const std::string& policy : names_.policies()) compare_policy(policy);
  }

 private:
  void compare_policy(const std::string& policy) {
    const bool measured = names_.has(config_.measured, policy);
    const bool simulated = names_.has(config_.simulated, policy);
    if (!measured) return absent(policy, {}, Outcome::kStated, "not measured");
    if (!simulated) return absent(policy, {}, Outcome::kFailed, "not simulated");
    if (!names_.admits(config_.measured, policy) && !names_.admits(config_.simulated, policy)) {
      // Its training is the job alone once more: an easy figure that would thin out the errors.
      return absent(policy, {}, Outcome::kStated, "admits no filler on either side");
    }
    if (const std::string note = names_.other_parameters(policy); !note.empty()) {
      absent(policy, {}, Outcome::kStated, note);
    }
    compare_figure({policy, {}, MeasuredMetric::kSlowdown});
    compare_figure({policy, {}, MeasuredMetric::kIteration});
    for (const std::string& filler : names_.fillers(policy)) compare_filler(policy, filler);
  }

  void compare_filler(const std::string& policy, const std::string& filler) {
    if (!names_.has(config_.measured, policy, filler)) {
      return absent(policy, filler, Outcome::kStated, "not measured");
    }
    if (!names_.has(config_.simulated, policy, filler)) {
      return absent(policy, filler, Outcome::kFailed, "not simulated");
    }
    for (const MeasuredMetric metric :
         {MeasuredMetric::kFillerThroughput, MeasuredMetric::kFillerOfOwnGpu, MeasuredMetric::kP50,
          MeasuredMetric::kP95, MeasuredMetric::kP99}) {
      compare_figure({policy, filler, metric});
    }
  }

  void compare_figure(const FigureName& name) {
    const SideValues measured = names_.values(config_.measured, name);
    const SideValues simulated = names_.values(config_.simulated, name);
    if (measured.count == 0 && simulated.count == 0) return;
    MeasuredCell cell = cell_of(name.policy, name.filler);
    cell.metric = name.metric;
    cell.measured = measured.median;
    cell.measured_low = measured.low;
    cell.measured_high = measured.high;
    cell.repetitions = measured.count;
    cell.simulated = simulated.median;
    judge(cell, measured, simulated);
    cells_.push_back(std::move(cell));
  }

  static void judge(MeasuredCell& cell, const SideValues& measured, const SideValues& simulated) {
    const auto is = [&](Outcome outcome, const char* note) {
      cell.outcome = outcome;
      cell.note = note;
    };
    const bool relative = !error_in_points(*cell.metric);
    if (measured.count == 0) return is(Outcome::kStated, "no such figure measured");
    if (simulated.count == 0) return is(Outcome::kFailed, "no such figure simulated");
    if (measured.lower_bound) return is(Outcome::kStated, "a lower bound was measured");
    if (simulated.lower_bound) return is(Outcome::kStated, "a lower bound was simulated");
    const bool filler = cell.metric == MeasuredMetric::kFillerThroughput ||
                        cell.metric == MeasuredMetric::kFillerOfOwnGpu;
    if (filler && measured.median == 0 && simulated.median == 0) {
      return is(Outcome::kStated, "did not run on either side");
    }
    if (relative && measured.median == 0) {
      return is(Outcome::kFailed, "0 was measured and more simulated");
    }
  }

  [[nodiscard]] MeasuredCell cell_of(const std::string& policy, const std::string& filler) const {
    MeasuredCell cell;
    cell.role = roles_.role(config_, policy);
    cell.fake = std::any_of(config_.measured.begin(), config_.measured.end(),
                            [](const ReportFigures* report) { return is_fake(*report); });
    cell.config = config_.label;
    cell.policy = policy;
    cell.filler = filler;
    return cell;
  }

  void absent(const std::string& policy, const std::string& filler, Outcome outcome,
              std::string note) {
    MeasuredCell cell = cell_of(policy, filler);
    cell.outcome = outcome;
    cell.note = std::move(note);
    cells_.push_back(std::move(cell));
  }

  const MatchedReports& config_;
  const MeasuredRoles& roles_;
  std::vector<MeasuredCell>& cells_;
  FigureNames names_;
};

}  // namespace

std::string_view metric_name(MeasuredMetric metric) {
  return kTexts[static_cast<std::size_t>(metric)].name;
}
std::string_view metric_unit(MeasuredMetric metric) {
  return kTexts[static_cast<std::size_t>(metric)].unit;
}
bool error_in_points(MeasuredMetric metric) { return metric_unit(metric) == "%"; }
std::string_view error_unit(MeasuredMetric metric) {
  return error_in_points(metric) ? "points" : "%";
}

double MeasuredCell::error() const {
  return error_in_points(*metric) ? simulated - measured : 100 * (simulated / measured - 1);
}

std::string MeasuredCell::name() const {
  std::string out = config;
  for (const std::string* part : {&policy, &filler}) {
    if (!part->empty()) out += "/" + *part;
  }
  return out;
}

std::vector<MeasuredCell> compare_measured(const std::vector<MatchedReports>& matched,
                                           const MeasuredRoles& roles) {
  std::vector<MeasuredCell> cells;
  for (const MatchedReports& config : matched) Comparer(config, roles, cells).compare();
  return cells;
}

}  // namespace bubblesim::validate
