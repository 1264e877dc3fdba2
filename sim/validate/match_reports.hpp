// The reports of both sides of a comparison (a results.json, or all of a folder's, with repetitions
// of a config together), and which simulated ones belong to which measured ones.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/validate/report_reader.hpp"

namespace bubblesim::validate {

/// Reports of one config from one folder.
struct ReportGroup {
  std::string folder;  ///< below the folder that was given; empty: itself, or a file was given
  std::string config;
  std::vector<ReportFigures> repetitions;  ///< not empty; in the order of their files' names
};

/// `path` is a file, or a folder in which every results.json and results-*.json counts, at any
/// depth; links to folders are not followed. Groups come in the order of folder, then of the
/// reports. Faults: nothing there, more than 10,000 files, and those of read_reports().
[[nodiscard]] CheckedResult<std::vector<ReportGroup>> find_reports(const std::string& path);

/// One config on both sides; the reports of a side are its repetitions. One side may be empty.
struct MatchedReports {
  std::string label;  ///< the config's name; "folder/name" where several folders have the name
  std::string config;
  std::vector<const ReportFigures*> simulated;
  std::vector<const ReportFigures*> measured;
};

/// Matches reports by the config's name. If both sides have the name in several folders, by folder;
/// if one side has it in one folder only, the other's folders are repetitions. The order is that of
/// the simulated groups, then of measured ones that nothing was simulated for. Borrows both.
[[nodiscard]] std::vector<MatchedReports> match_reports(
    const std::vector<ReportGroup>& simulated, const std::vector<ReportGroup>& measured);

}  // namespace bubblesim::validate
