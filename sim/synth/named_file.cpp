#include "sim/synth/named_file.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "sim/base/nearest.hpp"

namespace bubblesim::synth {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json") out.push_back(entry.path().stem().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

CheckedResult<std::string> resolve_name(std::string_view name, const std::string& folder,
                                        std::string_view what) {
  if (name.find('/') != std::string_view::npos || name.ends_with(".json")) {
    return std::string(name);
  }
  const std::vector<std::string> names = names_in(folder);
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    return folder + "/" + std::string(name) + ".json";
  }
  return tl::make_unexpected(
      Errors{Error{folder, {}, unknown_name_message(what, name, names)}});
}

}  // namespace bubblesim::synth
