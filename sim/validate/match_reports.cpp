#include "sim/validate/match_reports.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "sim/base/add_once.hpp"

namespace bubblesim::validate {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 10'000;

struct ReportFile {
  std::string folder;
  std::string path;
  friend auto operator<=>(const ReportFile&, const ReportFile&) = default;
};

bool is_results_name(const std::string& name) {
  return name == "results.json" || (name.starts_with("results-") && name.ends_with(".json"));
}

Result<std::vector<ReportFile>> list_files(const std::string& root) {
  std::vector<ReportFile> files;
  std::error_code code;
  fs::recursive_directory_iterator entry(root, code);
  for (const fs::recursive_directory_iterator end; !code && entry != end; entry.increment(code)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored)) continue;
    if (!is_results_name(entry->path().filename().string())) continue;
    if (files.size() == kMostFiles) {
      return fail(root, {}, "found more than " + std::to_string(kMostFiles) + " results.json");
    }
    const std::string folder = entry->path().parent_path().lexically_relative(root).string();
    files.push_back({folder == "." ? "" : folder, entry->path().string()});
  }
  if (code) return fail(root, {}, "cannot be read: " + code.message());
  if (files.empty()) {
    return fail(root, {}, "found no results.json or results-*.json, here or below");
  }
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::vector<ReportFile>> files_of(const std::string& path) {
  std::error_code code;
  if (fs::is_directory(path, code)) return list_files(path);
  return std::vector<ReportFile>{{"", path}};
}

using Groups = std::vector<ReportGroup>;
using Takes = std::function<bool(const ReportGroup&)>;

/// The reports of all groups that `takes` says yes for.
std::vector<const ReportFigures*> reports_of(const Groups& groups, const Takes& takes) {
  std::vector<const ReportFigures*> out;
  for (const ReportGroup& group : groups) {
    if (!takes(group)) continue;
    for (const ReportFigures& report : group.repetitions) out.push_back(&report);
  }
  return out;
}

/// Of the groups of both sides, simulated first.
std::vector<std::string> names_of(const Groups& simulated, const Groups& measured,
                                  std::string ReportGroup::*name, const Takes& takes) {
  std::vector<std::string> out;
  for (const Groups* side : {&simulated, &measured}) {
    for (const ReportGroup& group : *side) {
      if (takes(group)) add_once(out, group.*name);
    }
  }
  return out;
}

}  // namespace

CheckedResult<std::vector<ReportGroup>> find_reports(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<ReportFile> files, files_of(path));
  Errors errors;
  std::vector<ReportGroup> groups;
  for (const ReportFile& file : files) {
    for (ReportFigures& report : take(read_reports(file.path), errors)) {
      const auto same = [&](const ReportGroup& group) {
        return group.folder == file.folder && group.config == report.config;
      };
      auto group = std::find_if(groups.begin(), groups.end(), same);
      if (group == groups.end()) {
        group = groups.insert(group, {file.folder, report.config, {}});
      }
      group->repetitions.push_back(std::move(report));
    }
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return groups;
}

std::vector<MatchedReports> match_reports(const Groups& simulated, const Groups& measured) {
  std::vector<MatchedReports> out;
  const auto every_group = [](const ReportGroup&) { return true; };
  for (const std::string& config :
       names_of(simulated, measured, &ReportGroup::config, every_group)) {
    const auto named = [&](const ReportGroup& group) { return group.config == config; };
    const auto add = [&](const std::string& label, const Takes& takes) {
      out.push_back({label, config, reports_of(simulated, takes), reports_of(measured, takes)});
    };
    const bool by_folder = std::count_if(simulated.begin(), simulated.end(), named) > 1 &&
                           std::count_if(measured.begin(), measured.end(), named) > 1;
    if (!by_folder) {
      add(config, named);
      continue;
    }
    for (const std::string& folder :
         names_of(simulated, measured, &ReportGroup::folder, named)) {
      add(folder.empty() ? config : folder + "/" + config, [&](const ReportGroup& group) {
        return named(group) && group.folder == folder;
      });
    }
  }
  return out;
}

}  // namespace bubblesim::validate
