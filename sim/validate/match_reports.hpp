// Which simulated reports belong to which measured ones.
#pragma once

#include <string>
#include <vector>

#include "sim/validate/report_folder.hpp"

namespace bubblesim::validate {

/// One config on both sides; the reports of a side are its repetitions. One side may be empty.
struct MatchedReports {
  std::string label;  ///< the config's name; "folder/name" where several folders have the name
  std::string config;
  std::vector<const ReportFigures*> simulated;
  std::vector<const ReportFigures*> measured;
};

/// By the config's name. Where both sides have the name in several folders, by folder; where one
/// side has it in one folder only, the other's folders are repetitions. In the order of the
/// simulated groups, then of measured ones that nothing was simulated for. Borrows both.
[[nodiscard]] std::vector<MatchedReports> match_reports(
    const std::vector<ReportGroup>& simulated, const std::vector<ReportGroup>& measured);

}  // namespace bubblesim::validate
