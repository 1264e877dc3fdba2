// Inside of report_data: rows as read, and the steps that make a report of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/report/report_data.hpp"

namespace bubblesim::report {

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
[[nodiscard]] std::uint32_t place_in(std::vector<std::string>& list, const std::string& text);

/// Runs, failures, counters, hosts and versions; the sweeps' names.
[[nodiscard]] Result<ReportSource> read_store(store::ResultsStore& store,
                                              const ReportOptions& options, ReportData& data);

/// Axes of every sweep, policies, fillers, points.
void add_points(ReportSource& source, ReportData& data);

/// Adds the parts of every sweep.
void add_fronts(ReportData& data);
void add_curves(ReportData& data);
[[nodiscard]] Result<void> add_comparisons(store::ResultsStore& store, const ReportOptions& options,
                                           ReportData& data);

}  // namespace bubblesim::report
