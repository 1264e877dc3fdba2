#include "sim/validate/match_reports.hpp"

#include <algorithm>

namespace bubblesim::validate {
namespace {

using Groups = std::vector<const ReportGroup*>;
using Reports = std::vector<const ReportFigures*>;

Groups named(const std::vector<ReportGroup>& groups, const std::string& config) {
  Groups out;
  for (const ReportGroup& group : groups) {
    if (group.config == config) out.push_back(&group);
  }
  return out;
}

std::vector<std::string> names_of(const std::vector<ReportGroup>& simulated,
                                  const std::vector<ReportGroup>& measured) {
  std::vector<std::string> out;
  for (const auto* side : {&simulated, &measured}) {
    for (const ReportGroup& group : *side) {
      if (std::find(out.begin(), out.end(), group.config) == out.end()) {
        out.push_back(group.config);
      }
    }
  }
  return out;
}

void take(Reports& into, const ReportGroup& group) {
  for (const ReportFigures& report : group.repetitions) into.push_back(&report);
}

void match_by_folder(const Groups& simulated, const Groups& measured,
                     std::vector<MatchedReports>& out) {
  std::vector<std::string> folders;
  for (const Groups* side : {&simulated, &measured}) {
    for (const ReportGroup* group : *side) {
      if (std::find(folders.begin(), folders.end(), group->folder) == folders.end()) {
        folders.push_back(group->folder);
      }
    }
  }
  for (const std::string& folder : folders) {
    MatchedReports one;
    for (const ReportGroup* group : simulated) {
      if (group->folder == folder) take(one.simulated, *group);
    }
    for (const ReportGroup* group : measured) {
      if (group->folder == folder) take(one.measured, *group);
    }
    one.config = (simulated.empty() ? measured : simulated).front()->config;
    one.label = folder.empty() ? one.config : folder + "/" + one.config;
    out.push_back(std::move(one));
  }
}

}  // namespace

std::vector<MatchedReports> match_reports(const std::vector<ReportGroup>& simulated,
                                          const std::vector<ReportGroup>& measured) {
  std::vector<MatchedReports> out;
  for (const std::string& config : names_of(simulated, measured)) {
    const Groups left = named(simulated, config);
    const Groups right = named(measured, config);
    if (left.size() > 1 && right.size() > 1) {
      match_by_folder(left, right, out);
      continue;
    }
    MatchedReports one{config, config, {}, {}};
    for (const ReportGroup* group : left) take(one.simulated, *group);
    for (const ReportGroup* group : right) take(one.measured, *group);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace bubblesim::validate
