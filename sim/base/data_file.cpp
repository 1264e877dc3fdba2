#include "sim/base/data_file.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "sim/base/nearest.hpp"

namespace bubblesim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".json";

tl::unexpected<Errors> fault(const std::string& folder, std::string message) {
  return tl::make_unexpected(Errors{Error{folder, {}, std::move(message)}});
}

}  // namespace

bool is_file_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(kSuffix);
}

std::string data_file_id(const std::string& path) { return fs::path(path).stem().string(); }

CheckedResult<std::vector<std::string>> list_data_files(const std::string& folder,
                                                        std::string_view what) {
  std::error_code code;
  fs::directory_iterator entries(folder, code);
  std::vector<fs::path> paths;
  while (!code && entries != fs::directory_iterator()) {
    if (entries->path().extension() == kSuffix) paths.push_back(entries->path());
    entries.increment(code);
  }
  if (code) {
    return fault(folder, "the folder of " + std::string(what) +
                             " files cannot be read: " + code.message());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> out;
  for (const fs::path& path : paths) out.push_back(path.string());
  return out;
}

CheckedResult<std::string> pick_data_file(std::string_view name,
                                          const std::vector<std::string>& files,
                                          const std::string& folder, std::string_view what) {
  std::vector<std::string> ids;
  for (const std::string& file : files) {
    ids.push_back(data_file_id(file));
    if (ids.back() == name) return file;
  }
  return fault(folder, unknown_name_message(what, name, ids));
}

}  // namespace bubblesim
