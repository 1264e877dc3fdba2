// The data of a report, computed from a results store alone (no clock, no machine): the same store
// gives the same data.
//
// A *point* is a policy and a filler at one set of axis values. Its figures are means over the
// seeds, with the interval of the mean by Student's t (compare_policies.hpp, paired_half_width: the
// same formula). If a store holds a point's seed twice (from two versions of the program), the
// first in the store's order is used, as in comparisons; the other is counted as `repeated`.
//
// Indices refer to the lists of ReportData.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/report/report_axes.hpp"
#include "sim/report/report_timeline.hpp"
#include "sim/store/compare_policies.hpp"
#include "sim/store/results_store.hpp"

namespace bubblesim::report {

/// The most bytes of config texts in a report; further configs are left out and counted.
inline constexpr std::size_t kReportConfigBytes = std::size_t{3} << 20;
/// The most failed runs that a report lists; further ones are counted.
inline constexpr std::size_t kReportFailures = 500;
/// The most comparisons of a sweep, point by point; if there are more, all of them are left out.
inline constexpr std::size_t kReportComparisons = 5000;
/// The most fronts of a sweep; fronts are made for every choice on its axes.
inline constexpr std::size_t kReportFronts = 2000;

/// A policy with its parameters, drawn alike in all charts and tables of a page.
struct ReportPolicy {
  std::string name;
  std::string parameters;  ///< "name=value;...", without the parameters that a sweep varies
  bool oracle = false;
};

struct ReportRun {
  std::string key;
  std::uint32_t sweep = 0;
  std::uint64_t index = 0;
  std::uint64_t seed = 0;
  std::uint32_t host = 0;
  std::uint32_t version = 0;
  std::uint32_t device = 0;
  std::int64_t finished_unix_ns = 0;
  double cpu_s = 0;
  /// The JSON Patch (RFC 6902) from the sweep's base config to the run's. Nothing: left out.
  std::optional<std::string> patch;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> counters;  ///< counter and count
};

/// A figure of a point.
struct ReportValue {
  std::optional<double> mean;        ///< nothing: no seed has a value
  std::optional<double> half_width;  ///< of its interval; nothing: fewer than two seeds
  std::uint32_t seeds = 0;           ///< that have a value
  std::uint32_t lower_bounds = 0;    ///< latencies among them that are only lower bounds
  std::uint32_t overloaded = 0;      ///< latencies among them of an overloaded filler
};

struct ReportPoint {
  std::uint32_t sweep = 0;
  std::uint32_t policy = 0;
  std::uint32_t filler = 0;
  std::vector<AxisPlace> values;     ///< by axis of the sweep
  std::vector<std::uint32_t> runs;   ///< one for each seed
  std::set<std::string> losses;      ///< losses of any of `runs`, as in their rows
  std::vector<ReportValue> figures;  ///< by report_metrics()
  std::vector<std::vector<std::optional<double>>> by_run;  ///< the figures of each of `runs`
};

/// A Pareto front: the unbeaten points among those with these choices on the axes. Oracles are
/// ignored: they are not on a front and beat no point. A front has at least two points.
struct ReportFront {
  std::uint32_t filler = 0;
  std::uint32_t trade = 0;
  std::vector<AxisPlace> choices;  ///< by axis; kNoValue: any
  std::vector<std::uint32_t> points;
};

/// Points of one policy that differ by only one axis, in the order of its numbers.
struct ReportCurve {
  std::uint32_t filler = 0;
  std::uint32_t policy = 0;
  std::uint32_t axis = 0;
  std::vector<std::uint32_t> points;
};

struct ReportComparison {
  store::PolicyComparison line;
  std::vector<AxisPlace> values;  ///< of one point; empty: over all points
};

struct ReportSweep {
  std::string name;
  std::string base_config;  ///< of its first run
  std::vector<ReportAxis> axes;
  /// Policies of the sweep's runs, each with its label among these policies (compare_policies.hpp).
  std::vector<std::pair<std::uint32_t, std::string>> labels;
  std::vector<ReportFront> fronts;
  std::uint64_t fronts_left_out = 0;
  std::vector<ReportCurve> curves;
  /// The policy against which others are compared. A sweep with policy parameters as axes has none.
  std::string baseline;
  std::vector<ReportComparison> comparisons;
  std::uint64_t comparisons_left_out = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
};

struct ReportCounter {
  std::string name;
  CounterSet::Entry entry;  ///< count: over all runs
  std::uint64_t runs = 0;
};

struct ReportData {
  std::string title;
  double confidence = 0.95;
  std::vector<std::string> selection;  ///< the options that selected the rows shown
  std::vector<std::string> hosts;
  std::vector<std::string> versions;
  std::vector<std::string> devices;
  std::vector<std::string> fillers;    ///< "": rows of policies without fillers
  std::vector<ReportPolicy> policies;
  std::vector<ReportSweep> sweeps;
  std::vector<ReportRun> runs;
  std::vector<ReportPoint> points;
  std::vector<store::RunRecord> failures;
  std::uint64_t failures_left_out = 0;
  std::uint64_t configs_left_out = 0;
  std::uint64_t repeated = 0;
  std::vector<ReportCounter> counters;
  std::vector<ReportTimeline> timelines;
};

/// Reads the store. A store without rows gives a report that says so, not a fault. Of the options,
/// metrics and group are the report's own; the baseline is that of comparisons, the confidence that
/// of every interval.
[[nodiscard]] Result<ReportData> collect_report(store::ResultsStore& store,
                                                const store::CompareOptions& options);

/// The mean of the present values; with an interval if there are at least two.
[[nodiscard]] ReportValue mean_over_seeds(const std::vector<std::optional<double>>& values,
                                          double confidence);

}  // namespace bubblesim::report
