#include "sim/validate/report_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

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
  fs::recursive_directory_iterator it(root, code);
  for (const fs::recursive_directory_iterator end; !code && it != end; it.increment(code)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored) || !is_results_name(it->path().filename().string())) continue;
    if (files.size() == kMostFiles) {
      return fail(root, {}, "found more than " + std::to_string(kMostFiles) + " results.json");
    }
    const std::string folder = it->path().parent_path().lexically_relative(root).string();
    files.push_back({folder == "." ? "" : folder, it->path().string()});
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

}  // namespace

CheckedResult<std::vector<ReportGroup>> find_reports(const std::string& path) {
  const auto files = files_of(path);
  if (!files) return tl::make_unexpected(files.error());
  Errors errors;
  std::vector<ReportGroup> groups;
  for (const ReportFile& file : *files) {
    auto reports = read_reports(file.path);
    if (!reports) {
      errors.insert(errors.end(), reports.error().begin(), reports.error().end());
      continue;
    }
    for (ReportFigures& report : *reports) {
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

}  // namespace bubblesim::validate
