// The reports of one side of a comparison: a results.json, or all of a folder's, with repetitions
// of a config together.
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

}  // namespace bubblesim::validate
