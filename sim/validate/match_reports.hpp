// The reports of both sides of a comparison (a results.json, or all of a folder's, with repetitions
// of a config together), and the match of simulated to measured ones.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/csv_table.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::validate {

// Reads the judged figures from results.json of `bubblesim run` and `bubblesim measure`. A figure
// that a report lacks (null, no such key, no iteration finished) is missing, never zero; other keys
// are not read, so that reports may grow.

inline constexpr std::array<int, 3> kJudgedPercentiles = {50, 95, 99};

/// A figure, or a lower bound of it, such as a percentile of latencies.
struct BoundedFigure {
  double value = 0;
  bool lower_bound = false;  ///< the true value may be far more
};

/// A run that ends while requests are under way gives only lower bounds, but a few unfinished
/// requests hardly change a percentile p: it counts as known if at most this share of 1 - p was
/// unfinished (p95: 1 % of the requests, so that the value is at worst the 96th percentile).
inline constexpr double kUnfinishedShare = 0.2;

struct FillerFigures {
  std::string name;
  bool admitted = true;  ///< on any GPU; true in reports without instances
  std::optional<double> requests_per_s;
  std::optional<double> of_own_gpu;  ///< requests_per_s over that on a GPU of its own
  std::array<std::optional<BoundedFigure>, kJudgedPercentiles.size()> latency{};  ///< ms
};

struct PolicyFigures {
  std::string policy;
  std::string parameters;  ///< "name=value;name=value", defaults included
  std::optional<double> iteration_ms;  ///< mean; missing: no iteration finished in the window
  std::vector<FillerFigures> fillers;
};

/// A filler with a GPU of its own.
struct FillerAlone {
  std::string name;
  std::optional<double> requests_per_s;
};

struct ReportFigures {
  std::string place;   ///< the file, and the element if it holds several reports
  std::string config;
  std::string device;
  std::string measured;  ///< "gpu, 2026-11-22T10:00:00Z, driver 580.82"; empty: it was simulated
  std::optional<double> alone_iteration_ms;  ///< of the job without fillers
  std::vector<FillerAlone> alone;
  std::vector<PolicyFigures> policies;
};

/// Whether the report is of the simulator's GPU behind real processes, without a real GPU.
[[nodiscard]] inline bool is_fake(const ReportFigures& report) {
  return report.measured.starts_with("fake");
}

/// One report, or a list of them. Faults, all at once and each with its JSON pointer: no JSON, a
/// value of another kind, a negative figure, a policy or filler without a name, a filler or a
/// policy with the same parameters twice, an empty list.
[[nodiscard]] CheckedResult<std::vector<ReportFigures>> read_reports(const std::string& path);
[[nodiscard]] CheckedResult<std::vector<ReportFigures>> parse_reports(std::string_view text,
                                                                      const std::string& file);

/// Reports of one config from one folder.
struct ReportGroup {
  std::string folder;  ///< below the given folder; empty: that folder, or a file was given
  std::string config;
  std::vector<ReportFigures> repetitions;  ///< not empty; in the order of their files' names
};

/// `path` is a file, or a folder in which every results.json and results-*.json counts, at any
/// depth; links to folders are not followed. Groups come in the order of folder, then of the
/// reports. Faults: nothing there, more than 10,000 files, and those of read_reports().
[[nodiscard]] CheckedResult<std::vector<ReportGroup>> find_reports(const std::string& path);

/// One config on both sides; the reports of a side are its repetitions. One side may be empty.
struct MatchedReports {
  std::string label;  ///< the config's name; "folder/name" if several folders have the name
  std::string config;
  std::vector<const ReportFigures*> simulated;
  std::vector<const ReportFigures*> measured;
};

/// Matches reports by the config's name. If both sides have the name in several folders, by folder;
/// if one side has it in one folder only, the other's folders are repetitions. The order is that of
/// the simulated groups, then of measured ones without a simulation. Refers to both.
[[nodiscard]] std::vector<MatchedReports> match_reports(
    const std::vector<ReportGroup>& simulated, const std::vector<ReportGroup>& measured);

// The measurements to which constants were fitted: these are never judged.

/// The use of a measured row. Judging rows take no part in any fit.
enum class RowRole : std::uint8_t { kFit, kJudge };

/// "fit", "judge".
[[nodiscard]] std::string_view role_name(RowRole role);

/// The policy name of figures of the job alone, or of a filler alone.
inline constexpr const char* kAlone = "alone";

/// All figures are judged unless a rule says otherwise; the last rule that applies counts.
class MeasuredRoles {
 public:
  /// A table with the columns config, policy and role; an empty policy or "*" means all of the
  /// config, including figures alone. Faults: a missing column, a role other than "fit" and
  /// "judge", a config that neither side has.
  [[nodiscard]] static Result<MeasuredRoles> read(const std::string& path,
                                                  const std::vector<MatchedReports>& matched);
  [[nodiscard]] static Result<MeasuredRoles> parse(std::string_view text, const std::string& file,
                                                   const std::vector<MatchedReports>& matched);

  /// Adds "CONFIG" or "CONFIG:POLICY" to the fit. Fault: a config that neither side has.
  [[nodiscard]] Result<void> add_fit(const std::string& name,
                                     const std::vector<MatchedReports>& matched);

  [[nodiscard]] RowRole role(const MatchedReports& config, const std::string& policy) const;

 private:
  struct Rule {
    std::string config;  ///< its label or its name
    std::string policy;  ///< empty: all
    RowRole role = RowRole::kJudge;
  };
  [[nodiscard]] static Result<MeasuredRoles> from(const CsvTable& table,
                                                  const std::vector<MatchedReports>& matched);
  std::vector<Rule> rules_;
};

}  // namespace bubblesim::validate
