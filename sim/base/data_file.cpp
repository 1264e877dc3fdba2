#include "sim/base/data_file.hpp"

#include <algorithm>
#include <system_error>

#include "sim/base/nearest.hpp"

namespace bubblesim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".json";

}  // namespace

bool is_file_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(kSuffix);
}

std::string data_file_id(const std::string& path) { return fs::path(path).stem().string(); }

bool is_hidden_file(const fs::path& path) { return path.filename().string().starts_with('.'); }

Result<std::vector<std::string>> list_data_files(const std::string& folder,
                                                 std::string_view what) {
  std::error_code code;
  fs::directory_iterator entries(folder, code);
  std::vector<std::string> paths;
  while (!code && entries != fs::directory_iterator()) {
    const fs::path& path = entries->path();
    if (path.extension() == kSuffix && !is_hidden_file(path)) paths.push_back(path.string());
    entries.increment(code);
  }
  if (code) {
    return fail(folder, {}, "the folder of " + std::string(what) +
                                " files cannot be read: " + code.message());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<std::string> find_data_file(std::string_view name, const std::string& folder,
                                   std::string_view what) {
  if (is_file_path(name)) return std::string(name);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto paths, list_data_files(folder, what));
  std::vector<std::string> ids;
  for (const std::string& path : paths) {
    ids.push_back(data_file_id(path));
    if (ids.back() == name) return path;
  }
  return fail(folder, {}, unknown_name_message(what, name, ids));
}

}  // namespace bubblesim
