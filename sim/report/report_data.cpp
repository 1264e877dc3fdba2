#include "sim/report/report_data.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>

#include "sim/base/json.hpp"
#include "sim/store/store_reader.hpp"

namespace bubblesim::report {
namespace {

/// A row of a run, with what a report shows of it.
struct PageRow {
  std::uint32_t run = 0;     ///< into ReportData::runs
  std::string policy;
  std::string parameters;
  std::string filler;
  bool oracle = false;
  std::string losses;  ///< the row's
  std::vector<std::optional<double>> figures;  ///< by report_metrics()
  std::vector<bool> lower_bounds;              ///< the same
  std::vector<bool> overloaded;                ///< the same
};

/// What a store holds, in its order.
struct ReportSource {
  std::vector<PageRow> rows;
  std::vector<std::vector<store::Setting>> settings;  ///< by run
};

/// The index of a text in a list; it is added if it is not there.
std::uint32_t place_in(std::vector<std::string>& list, const std::string& text) {
  const auto found = std::find(list.begin(), list.end(), text);
  if (found != list.end()) return static_cast<std::uint32_t>(found - list.begin());
  list.push_back(text);
  return static_cast<std::uint32_t>(list.size() - 1);
}

class StoreReading {
 public:
  explicit StoreReading(const store::RowFilter& filter, ReportData& data)
      : filter_(filter), data_(data) {}

  void take(const store::RunRecord& record) {
    ReportSweep& sweep = sweep_of(record);
    if (record.status == store::RunStatus::kFailed) {
      ++sweep.failed;
      if (data_.failures.size() < kReportFailures) data_.failures.push_back(record);
      else ++data_.failures_left_out;
      add_counters(record);
      return;
    }
    const bool shown = std::any_of(record.rows.begin(), record.rows.end(),
                                   [&](const auto& row) { return store::passes(row, filter_); });
    if (!shown) return;
    ++sweep.done;
    add_run(record);
    for (const observe::ResultRow& row : record.rows) {
      if (store::passes(row, filter_)) add_row(record, row);
    }
  }

  [[nodiscard]] ReportSource source() && {
    std::map<std::string, std::uint32_t> places;
    for (const auto& [name, counter] : counters_) {
      places.emplace(name, static_cast<std::uint32_t>(places.size()));
      data_.counters.push_back(counter);
    }
    for (std::size_t run = 0; run < data_.runs.size(); ++run) {
      for (const auto& [name, count] : counts_[run]) {
        data_.runs[run].counters.emplace_back(places.at(name), count);
      }
    }
    return std::move(source_);
  }

 private:
  ReportSweep& sweep_of(const store::RunRecord& record) {
    if (data_.sweeps.empty() || data_.sweeps.back().name != record.sweep) {
      data_.sweeps.emplace_back().name = record.sweep;
      base_ = Json();
    }
    return data_.sweeps.back();
  }

  void add_run(const store::RunRecord& record) {
    ReportRun& run = data_.runs.emplace_back();
    run.key = record.run.key;
    run.sweep = static_cast<std::uint32_t>(data_.sweeps.size() - 1);
    run.index = record.run.index;
    run.seed = record.run.seed;
    run.host = place_in(data_.hosts, record.host);
    run.version = place_in(data_.versions, record.version);
    run.device = place_in(data_.devices, store::text_in(record.rows[0], "device"));
    run.finished_unix_ns = record.finished_unix_ns;
    run.cpu_s = to_seconds(record.cpu);
    run.patch = patch_of(record.run.config);
    counts_.push_back(add_counters(record));
    source_.settings.push_back(record.run.settings);
  }

  /// Configs of a sweep are alike: each is kept as its difference from the first.
  std::optional<std::string> patch_of(const std::string& text) {
    Json config = Json::parse(text, nullptr, false);
    std::string kept;
    if (base_.is_null()) {
      data_.sweeps.back().base_config = text;
      base_ = std::move(config);
      kept = "[]";
    } else {
      kept = compact_text(Json::diff(base_, config));
    }
    if (config_bytes_ + kept.size() > kReportConfigBytes) {
      ++data_.configs_left_out;
      return std::nullopt;
    }
    config_bytes_ += kept.size();
    return kept;
  }

  /// The counts of the record by counter.
  std::vector<std::pair<std::string, std::uint64_t>> add_counters(const store::RunRecord& record) {
    std::vector<std::pair<std::string, std::uint64_t>> counts;
    for (const auto& [name, entry] : record.counters) {
      auto [place, fresh] = counters_.try_emplace(name, ReportCounter{name, entry, 0});
      if (!fresh) place->second.entry.count += entry.count;
      ++place->second.runs;
      counts.emplace_back(name, entry.count);
    }
    return counts;
  }

  void add_row(const store::RunRecord& record, const observe::ResultRow& row) {
    PageRow& shown = source_.rows.emplace_back();
    shown.run = static_cast<std::uint32_t>(data_.runs.size() - 1);
    shown.policy = store::text_in(row, "policy");
    shown.parameters = store::text_in(row, "policy_parameters");
    for (const store::Setting& setting : record.run.settings) leave_out(shown.parameters, setting);
    shown.filler = store::text_in(row, "filler");
    shown.losses = store::text_in(row, "losses");
    shown.oracle = store::number_in(row, "oracle").value_or(0) != 0;
    for (std::size_t i = 0; i < report_metrics().size(); ++i) {
      shown.figures.push_back(metric_of(row, i));
      shown.lower_bounds.push_back(store::is_lower_bound(row, report_metrics()[i].column));
      shown.overloaded.push_back(store::is_overloaded(row, report_metrics()[i].column));
    }
  }

  /// A parameter that the sweep varies is an axis, no part of the policy's name.
  static void leave_out(std::string& parameters, const store::Setting& setting) {
    const std::string name = swept_parameter(setting);
    if (name.empty()) return;
    const std::string text = ';' + parameters + ';';
    const std::size_t from = text.find(';' + name + '=');
    if (from == std::string::npos) return;
    const std::string rest = text.substr(0, from) + text.substr(text.find(';', from + 1));
    parameters = rest.size() < 2 ? "" : rest.substr(1, rest.size() - 2);
  }

  const store::RowFilter& filter_;
  ReportData& data_;
  ReportSource source_;
  Json base_;
  std::size_t config_bytes_ = 0;
  std::map<std::string, ReportCounter> counters_;
  std::vector<std::vector<std::pair<std::string, std::uint64_t>>> counts_;  // by run and counter
};

/// Runs, failures, counters, hosts and versions; the sweeps' names.
Result<ReportSource> read_store(store::ResultsStore& store, const store::CompareOptions& options,
                                ReportData& data) {
  StoreReading reading(options.filter, data);
  store::RowFilter filter = options.filter;
  if (filter.sweeps.empty()) {  // named, so that a run comes under each of its sweeps
    std::set<std::string> sweeps;
    BUBBLESIM_RETURN_IF_ERROR(
        store.each_run(filter, [&](const store::RunRecord& run) { sweeps.insert(run.sweep); }));
    if (sweeps.empty()) return std::move(reading).source();
    filter.sweeps.assign(sweeps.begin(), sweeps.end());
  }
  BUBBLESIM_RETURN_IF_ERROR(
      store.each_record(filter, [&](const store::RunRecord& record) { reading.take(record); }));
  return std::move(reading).source();
}

// Rows of seeds become points.

std::vector<const std::vector<store::Setting>*> settings_of_sweep(const ReportSource& source,
                                                           const ReportData& data,
                                                           std::uint32_t sweep) {
  std::vector<const std::vector<store::Setting>*> all;
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    if (data.runs[run].sweep == sweep) all.push_back(&source.settings[run]);
  }
  return all;
}

class Points {
 public:
  Points(const ReportSource& source, ReportData& data)
      : source_(source), data_(data), labels_(data.sweeps.size()) {
    for (const PageRow& row : source.rows) {
      labels_[data.runs[row.run].sweep].see(row.policy, row.parameters);
    }
  }

  void take(const PageRow& row) {
    const ReportRun& run = data_.runs[row.run];
    const ReportSweep& sweep = data_.sweeps[run.sweep];
    std::vector<AxisPlace> values;
    for (const ReportAxis& axis : sweep.axes) {
      values.push_back(axis.place_of(source_.settings[row.run]));
    }
    const std::uint32_t policy = policy_of(row);
    const std::uint32_t filler = place_in(data_.fillers, row.filler);
    const auto [place, fresh] =
        points_.try_emplace({run.sweep, policy, filler, values}, data_.points.size());
    if (fresh) {
      data_.points.push_back({run.sweep, policy, filler, values, {}, {}, {}, {}});
      rows_.emplace_back();
    }
    ReportPoint& point = data_.points[place->second];
    const bool seen = std::any_of(point.runs.begin(), point.runs.end(), [&](std::uint32_t other) {
      return data_.runs[other].seed == run.seed;
    });
    if (seen) {
      ++data_.repeated;
      return;
    }
    point.runs.push_back(row.run);
    if (!row.losses.empty()) point.losses.insert(row.losses);
    rows_[place->second].push_back(&row);
  }

  void finish() {
    for (std::size_t i = 0; i < data_.points.size(); ++i) finish(data_.points[i], rows_[i]);
  }

 private:
  std::uint32_t policy_of(const PageRow& row) {
    const auto [place, fresh] = policies_.try_emplace(
        {row.policy, row.parameters}, static_cast<std::uint32_t>(data_.policies.size()));
    if (fresh) data_.policies.push_back({row.policy, row.parameters, row.oracle});
    const std::uint32_t sweep = data_.runs[row.run].sweep;
    if (labelled_.insert({sweep, place->second}).second) {
      data_.sweeps[sweep].labels.emplace_back(place->second,
                                              labels_[sweep].label(row.policy, row.parameters));
    }
    return place->second;
  }

  void finish(ReportPoint& point, const std::vector<const PageRow*>& rows) const {
    for (const PageRow* row : rows) point.by_run.push_back(row->figures);
    for (std::size_t figure = 0; figure < report_metrics().size(); ++figure) {
      std::vector<std::optional<double>> values;
      std::uint32_t bounds = 0;
      std::uint32_t overloaded = 0;
      for (const PageRow* row : rows) {
        values.push_back(row->figures[figure]);
        bounds += values.back() && row->lower_bounds[figure] ? 1U : 0U;
        overloaded += values.back() && row->overloaded[figure] ? 1U : 0U;
      }
      point.figures.push_back(mean_over_seeds(values, data_.confidence));
      point.figures.back().lower_bounds = bounds;
      point.figures.back().overloaded = overloaded;
    }
  }

  const ReportSource& source_;
  ReportData& data_;
  std::vector<store::PolicyLabels> labels_;  // by sweep
  std::map<std::pair<std::string, std::string>, std::uint32_t> policies_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> labelled_;  // sweep and policy
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::vector<AxisPlace>>,
           std::size_t>
      points_;
  std::vector<std::vector<const PageRow*>> rows_;  // by point
};

/// Axes of every sweep, policies, fillers, points.
void add_points(ReportSource& source, ReportData& data) {
  for (std::uint32_t sweep = 0; sweep < data.sweeps.size(); ++sweep) {
    data.sweeps[sweep].axes = axes_of(settings_of_sweep(source, data, sweep));
  }
  Points points(source, data);
  for (const PageRow& row : source.rows) points.take(row);
  points.finish();
}

// Fronts for every choice that a reader can make on a sweep's axes, and curves along each axis.

/// Points of a sweep by filler.
std::map<std::uint32_t, std::vector<std::uint32_t>> by_filler(const ReportData& data,
                                                              std::uint32_t sweep) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> groups;
  for (std::uint32_t i = 0; i < data.points.size(); ++i) {
    if (data.points[i].sweep == sweep) groups[data.points[i].filler].push_back(i);
  }
  return groups;
}

std::vector<std::uint32_t> front_of(const ReportData& data, const ReportTrade& trade,
                                    const std::vector<std::uint32_t>& points) {
  std::vector<TradePoint> candidates;
  for (const std::uint32_t point : points) {
    const bool oracle = data.policies[data.points[point].policy].oracle;
    const auto& figures = data.points[point].figures;
    candidates.push_back(oracle ? TradePoint{}
                                : TradePoint{figures[trade.x].mean, figures[trade.y].mean});
  }
  std::vector<std::uint32_t> front;
  const auto metrics = report_metrics();
  for (const std::size_t i :
       pareto_front(candidates, metrics[trade.x].better, metrics[trade.y].better)) {
    front.push_back(points[i]);
  }
  return front;
}

/// Sets of axes that may be chosen on: none first, then few before many.
std::vector<std::uint32_t> axis_sets(std::size_t axes) {
  constexpr std::size_t kMostAxes = 10;
  std::vector<std::uint32_t> sets(std::size_t{1} << std::min(axes, kMostAxes));
  std::iota(sets.begin(), sets.end(), 0U);
  std::stable_sort(sets.begin(), sets.end(), [](std::uint32_t a, std::uint32_t b) {
    return std::popcount(a) < std::popcount(b);
  });
  return sets;
}

std::vector<AxisPlace> choices_of(const ReportSweep& sweep, const ReportPoint& point,
                                  std::uint32_t set) {
  std::vector<AxisPlace> choices(sweep.axes.size(), kNoValue);
  for (std::size_t axis = 0; axis < choices.size(); ++axis) {
    const bool chosen = axis < 32 && ((set >> axis) & 1U) != 0;
    if (!chosen || point.values[axis] == kNoValue) continue;
    choices[axis] = sweep.axes[axis].choice_of[static_cast<std::size_t>(point.values[axis])];
  }
  return choices;
}

void add_fronts_of(const ReportData& data, std::uint32_t filler,
                   const std::vector<std::uint32_t>& points, ReportSweep& sweep) {
  for (const std::uint32_t set : axis_sets(sweep.axes.size())) {
    std::map<std::vector<AxisPlace>, std::vector<std::uint32_t>> groups;
    for (const std::uint32_t point : points) {
      const auto choices = choices_of(sweep, data.points[point], set);
      // A run that does not set a chosen axis is of no choice on it.
      const auto chosen = static_cast<int>(std::count_if(
          choices.begin(), choices.end(), [](AxisPlace place) { return place != kNoValue; }));
      if (chosen == std::popcount(set)) groups[choices].push_back(point);
    }
    for (const auto& [choices, members] : groups) {
      if (members.size() < 2) continue;
      for (std::uint32_t trade = 0; trade < report_trades().size(); ++trade) {
        auto front = front_of(data, report_trades()[trade], members);
        if (front.empty()) continue;
        if (sweep.fronts.size() >= kReportFronts) {
          ++sweep.fronts_left_out;
          continue;
        }
        sweep.fronts.push_back({filler, trade, choices, std::move(front)});
      }
    }
  }
}

void add_curves_along(const ReportData& data, std::uint32_t filler, std::uint32_t axis,
                      const std::vector<std::uint32_t>& points, ReportSweep& sweep) {
  std::map<std::pair<std::uint32_t, std::vector<AxisPlace>>, std::vector<std::uint32_t>> curves;
  for (const std::uint32_t index : points) {
    const ReportPoint& point = data.points[index];
    if (point.values[axis] == kNoValue) continue;
    std::vector<AxisPlace> others = point.values;
    others[axis] = kNoValue;
    curves[{point.policy, others}].push_back(index);
  }
  for (auto& [key, members] : curves) {
    if (members.size() < 2) continue;
    // Places of values rise with their numbers.
    std::sort(members.begin(), members.end(), [&](std::uint32_t a, std::uint32_t b) {
      return data.points[a].values[axis] < data.points[b].values[axis];
    });
    sweep.curves.push_back({filler, key.first, axis, members});
  }
}

void add_fronts_and_curves(ReportData& data) {
  for (std::uint32_t index = 0; index < data.sweeps.size(); ++index) {
    ReportSweep& sweep = data.sweeps[index];
    for (const auto& [filler, points] : by_filler(data, index)) {
      add_fronts_of(data, filler, points, sweep);
      for (std::uint32_t axis = 0; axis < sweep.axes.size(); ++axis) {
        if (!sweep.axes[axis].numbers.empty()) add_curves_along(data, filler, axis, points, sweep);
      }
    }
  }
}

// Policies against a baseline, sweep by sweep, as `bubblesim results compare` computes them.

const std::vector<std::string>& compared_metrics() {
  static const std::vector<std::string> names{
      "training_normalised_fraction", "filler_requests_per_s", "latency_p95_ms",
      "bubble_recovered_fraction"};
  return names;
}

/// Every set of parameters would be a policy of its own.
bool varies_policies(const ReportSweep& sweep) {
  return std::ranges::any_of(sweep.axes, [](const ReportAxis& axis) {
    return !swept_parameter({axis.pointer, {}}).empty();
  });
}

Result<void> add_comparisons(store::ResultsStore& store, const store::CompareOptions& options,
                             ReportData& data) {
  for (std::uint32_t index = 0; index < data.sweeps.size(); ++index) {
    ReportSweep& sweep = data.sweeps[index];
    const auto is_own = [&](const ReportPoint& point) { return point.sweep == index; };
    if (std::ranges::none_of(data.points, is_own) || varies_policies(sweep)) continue;
    store::CompareOptions compare = options;
    compare.metrics = compared_metrics();
    compare.filter.sweeps = {sweep.name};
    for (const auto group : {store::ComparisonGroup::kAll, store::ComparisonGroup::kPoint}) {
      if (group == store::ComparisonGroup::kPoint && sweep.axes.empty()) continue;
      compare.group = group;
      BUBBLESIM_ASSIGN_OR_RETURN(store::Comparison compared,
                                 store::compare_policies(store, compare));
      sweep.baseline = compared.baseline;
      if (group == store::ComparisonGroup::kPoint && compared.lines.size() > kReportComparisons) {
        sweep.comparisons_left_out = compared.lines.size();
        continue;
      }
      for (store::PolicyComparison& line : compared.lines) {
        ReportComparison& shown = sweep.comparisons.emplace_back();
        if (group == store::ComparisonGroup::kPoint) {
          for (const ReportAxis& axis : sweep.axes) {
            shown.values.push_back(axis.place_of(line.point));
          }
        }
        shown.line = std::move(line);
      }
    }
  }
  return {};
}

}  // namespace

ReportValue mean_over_seeds(const std::vector<std::optional<double>>& values, double confidence) {
  std::vector<double> there;
  for (const auto& value : values) {
    if (value) there.push_back(*value);
  }
  ReportValue result;
  result.seeds = static_cast<std::uint32_t>(there.size());
  if (there.empty()) return result;
  result.mean =
      std::accumulate(there.begin(), there.end(), 0.0) / static_cast<double>(there.size());
  if (there.size() > 1) result.half_width = store::paired_half_width(there, confidence);
  return result;
}

Result<ReportData> collect_report(store::ResultsStore& store,
                                  const store::CompareOptions& options) {
  BUBBLESIM_RETURN_IF_ERROR(store::check_confidence(options.confidence));
  ReportData data;
  data.confidence = options.confidence;
  BUBBLESIM_ASSIGN_OR_RETURN(ReportSource source, read_store(store, options, data));
  for (const ReportSweep& sweep : data.sweeps) {
    data.title += (data.title.empty() ? "Results: " : ", ") + sweep.name;
  }
  if (data.title.empty()) data.title = "Results: none";
  add_points(source, data);
  add_fronts_and_curves(data);
  BUBBLESIM_RETURN_IF_ERROR(add_comparisons(store, options, data));
  return data;
}

}  // namespace bubblesim::report
