#include "sim/validate/compare_measured.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/base/add_once.hpp"

namespace bubblesim::validate {
namespace {

struct MetricText {
  std::string_view name;
  std::string_view unit;
  std::string_view title;
};

constexpr std::array<MetricText, kAllMeasuredMetrics.size()> kTexts = {
    {{"training_slowdown", "%", "slowdown, %"},
     {"training_iteration", "ms", "iteration, ms"},
     {"filler_throughput", "1/s", "requests/s"},
     {"filler_of_own_gpu", "%", "% of own GPU"},
     {"latency_p50", "ms", "p50, ms"},
     {"latency_p95", "ms", "p95, ms"},
     {"latency_p99", "ms", "p99, ms"},
     {"alone_iteration", "ms", "iteration, ms"},
     {"filler_alone", "1/s", "requests/s"}}};
const MetricText& text_of(MeasuredMetric metric) {
  return kTexts[static_cast<std::size_t>(metric)];
}

using Figure = std::optional<BoundedFigure>;

Figure plain(const std::optional<double>& value, double factor = 1) {
  return value ? Figure(BoundedFigure{*value * factor, false}) : std::nullopt;
}

/// One figure on one side, over repetitions.
struct SideFigure {
  std::vector<double> values;
  bool lower_bound = false;  ///< in one of them

  /// For an even number of values, the mean of the middle two. Precondition: sorted, not empty.
  [[nodiscard]] double median() const {
    return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
  }
};

/// A policy or a filler, and the sides that have it: first the simulated one.
struct Entry {
  std::string name;
  std::array<bool, 2> there{};
  std::array<bool, 2> admits{};  ///< some filler may run under the policy on some report
  std::array<std::optional<std::string>, 2> parameters{};
  std::vector<Entry> fillers;
};

Entry& entry_of(std::vector<Entry>& entries, const std::string& name) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.name == name; });
  return found != entries.end() ? *found : entries.emplace_back(Entry{name, {}, {}, {}, {}});
}

/// Both sides of a config by policy, filler and metric.
class Sheet {
 public:
  explicit Sheet(const MatchedReports& config) {
    const std::array sides{&config.simulated, &config.measured};
    for (const auto* side : sides) {
      for (const ReportFigures* report : *side) find_repeated(*report);
    }
    for (side_ = 0; side_ < sides.size(); ++side_) {
      for (const ReportFigures* report : *sides[side_]) take(*report);
    }
    for (auto& [name, figures] : figures_) {
      for (SideFigure& figure : figures) std::sort(figure.values.begin(), figure.values.end());
    }
  }

  /// Fillers that either side has alone, simulated ones first.
  [[nodiscard]] const std::vector<std::string>& fillers_alone() const { return alone_; }
  [[nodiscard]] const std::vector<Entry>& policies() const { return policies_; }
  /// Null: neither side has it.
  [[nodiscard]] const std::array<SideFigure, 2>* find(const std::string& policy,
                                                      const std::string& filler,
                                                      MeasuredMetric metric) const {
    const auto found = figures_.find({policy, filler, metric});
    return found == figures_.end() ? nullptr : &found->second;
  }

 private:
  void find_repeated(const ReportFigures& report) {
    std::vector<std::string> seen;
    for (const PolicyFigures& policy : report.policies) {
      const bool is_repeated = std::find(seen.begin(), seen.end(), policy.policy) != seen.end();
      if (is_repeated) add_once(repeated_, policy.policy);
      seen.push_back(policy.policy);
    }
  }

  void take(const ReportFigures& report) {
    add(kAlone, {}, MeasuredMetric::kAloneIteration, plain(report.alone_iteration_ms));
    for (const FillerAlone& filler : report.alone) {
      add_once(alone_, filler.name);
      add(kAlone, filler.name, MeasuredMetric::kFillerAlone, plain(filler.requests_per_s));
    }
    for (const PolicyFigures& policy : report.policies) take(report, policy);
  }

  /// A policy that a report has several times is told apart by its parameters.
  void take(const ReportFigures& report, const PolicyFigures& policy) {
    const bool repeated =
        std::find(repeated_.begin(), repeated_.end(), policy.policy) != repeated_.end();
    const std::string key =
        repeated ? policy.policy + " (" + policy.parameters + ")" : policy.policy;
    Entry& entry = entry_of(policies_, key);
    entry.there[side_] = true;
    if (!entry.parameters[side_]) entry.parameters[side_] = policy.parameters;
    add(key, {}, MeasuredMetric::kIteration, plain(policy.iteration_ms));
    if (policy.iteration_ms && report.alone_iteration_ms) {
      const double slowdown = 100 * (*policy.iteration_ms / *report.alone_iteration_ms - 1);
      add(key, {}, MeasuredMetric::kSlowdown, plain(slowdown));
    }
    for (const FillerFigures& filler : policy.fillers) {
      entry.admits[side_] = entry.admits[side_] || filler.admitted;
      entry_of(entry.fillers, filler.name).there[side_] = true;
      add(key, filler.name, MeasuredMetric::kFillerThroughput, plain(filler.requests_per_s));
      add(key, filler.name, MeasuredMetric::kFillerOfOwnGpu, plain(filler.of_own_gpu, 100));
      add(key, filler.name, MeasuredMetric::kP50, filler.latency[0]);
      add(key, filler.name, MeasuredMetric::kP95, filler.latency[1]);
      add(key, filler.name, MeasuredMetric::kP99, filler.latency[2]);
    }
  }

  void add(const std::string& policy, const std::string& filler, MeasuredMetric metric,
           const Figure& value) {
    if (!value) return;
    SideFigure& figure = figures_[{policy, filler, metric}][side_];
    figure.values.push_back(value->value);
    figure.lower_bound = figure.lower_bound || value->lower_bound;
  }

  std::size_t side_ = 0;  ///< of the report that is taken
  std::vector<std::string> repeated_;  ///< policies that some report has several times
  std::vector<std::string> alone_;
  std::vector<Entry> policies_;
  std::map<std::tuple<std::string, std::string, MeasuredMetric>, std::array<SideFigure, 2>>
      figures_;
};

/// How the parameters of the sides differ; empty: they do not, or are not known.
std::string other_parameters(const Entry& policy) {
  const std::string simulated = policy.parameters[0].value_or("");
  const std::string measured = policy.parameters[1].value_or("");
  if (simulated.empty() || measured.empty() || simulated == measured) return {};
  return "other parameters: simulated " + simulated + ", measured " + measured;
}

class Comparer {
 public:
  Comparer(const MatchedReports& config, const MeasuredRoles& roles,
           std::vector<MeasuredCell>& cells)
      : config_(config), roles_(roles), cells_(cells), sheet_(config) {}

  void compare() {
    if (is_absent({}, {}, {!config_.simulated.empty(), !config_.measured.empty()})) return;
    compare_figure(kAlone, {}, MeasuredMetric::kAloneIteration);
    for (const std::string& filler : sheet_.fillers_alone()) {
      compare_figure(kAlone, filler, MeasuredMetric::kFillerAlone);
    }
    for (const Entry& policy : sheet_.policies()) compare_policy(policy);
  }

 private:
  void compare_policy(const Entry& policy) {
    if (is_absent(policy.name, {}, policy.there)) return;
    if (!policy.admits[0] && !policy.admits[1]) {
      // Its training is the job alone once more: an easy figure that would thin out the errors.
      add(policy.name, {}, RowOutcome::kStated, "admits no filler on either side");
      return;
    }
    if (std::string note = other_parameters(policy); !note.empty()) {
      add(policy.name, {}, RowOutcome::kStated, std::move(note));
    }
    compare_figure(policy.name, {}, MeasuredMetric::kSlowdown);
    compare_figure(policy.name, {}, MeasuredMetric::kIteration);
    for (const Entry& filler : policy.fillers) {
      if (is_absent(policy.name, filler.name, filler.there)) continue;
      for (const MeasuredMetric metric :
           {MeasuredMetric::kFillerThroughput, MeasuredMetric::kFillerOfOwnGpu,
            MeasuredMetric::kP50, MeasuredMetric::kP95, MeasuredMetric::kP99}) {
        compare_figure(policy.name, filler.name, metric);
      }
    }
  }

  void compare_figure(const std::string& policy, const std::string& filler,
                      MeasuredMetric metric) {
    const auto* sides = sheet_.find(policy, filler, metric);
    if (sides == nullptr) return;
    const auto& [simulated, measured] = *sides;
    MeasuredCell& cell = add(policy, filler, RowOutcome::kPredicted, {});
    cell.metric = metric;
    cell.repetitions = measured.values.size();
    if (!measured.values.empty()) {
      cell.measured = measured.median();
      cell.measured_low = measured.values.front();
      cell.measured_high = measured.values.back();
    }
    if (!simulated.values.empty()) cell.simulated = simulated.median();
    judge(cell, measured, simulated);
  }

  static void judge(MeasuredCell& cell, const SideFigure& measured, const SideFigure& simulated) {
    const auto is = [&](RowOutcome outcome, const char* note) {
      cell.outcome = outcome;
      cell.note = note;
    };
    if (measured.values.empty()) return is(RowOutcome::kStated, "no such figure measured");
    if (simulated.values.empty()) return is(RowOutcome::kFailed, "no such figure simulated");
    if (measured.lower_bound) return is(RowOutcome::kStated, "a lower bound was measured");
    if (simulated.lower_bound) return is(RowOutcome::kStated, "a lower bound was simulated");
    const bool filler = cell.metric == MeasuredMetric::kFillerThroughput ||
                        cell.metric == MeasuredMetric::kFillerOfOwnGpu;
    if (filler && cell.measured == 0 && cell.simulated == 0) {
      return is(RowOutcome::kStated, "did not run on either side");
    }
    if (!error_in_points(*cell.metric) && cell.measured == 0) {
      return is(RowOutcome::kFailed, "0 was measured and more simulated");
    }
  }

  /// Says so if a side does not have it.
  bool is_absent(const std::string& policy, const std::string& filler,
                 const std::array<bool, 2>& there) {
    const auto& [simulated, measured] = there;
    if (!measured) add(policy, filler, RowOutcome::kStated, "not measured");
    else if (!simulated) add(policy, filler, RowOutcome::kFailed, "not simulated");
    return !measured || !simulated;
  }

  MeasuredCell& add(const std::string& policy, const std::string& filler, RowOutcome outcome,
                    std::string note) {
    MeasuredCell& cell = cells_.emplace_back();
    cell.role = roles_.role(config_, policy);
    cell.fake = std::any_of(config_.measured.begin(), config_.measured.end(),
                            [](const ReportFigures* report) { return is_fake(*report); });
    cell.config = config_.label;
    cell.policy = policy;
    cell.filler = filler;
    cell.outcome = outcome;
    cell.note = std::move(note);
    return cell;
  }

  const MatchedReports& config_;
  const MeasuredRoles& roles_;
  std::vector<MeasuredCell>& cells_;
  Sheet sheet_;
};

}  // namespace

std::string_view metric_name(MeasuredMetric metric) { return text_of(metric).name; }
std::string_view metric_unit(MeasuredMetric metric) { return text_of(metric).unit; }
std::string_view metric_title(MeasuredMetric metric) { return text_of(metric).title; }
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
