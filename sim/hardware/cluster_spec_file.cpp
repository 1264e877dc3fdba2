#include "sim/hardware/cluster_spec_file.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/nearest.hpp"
#include "sim/hardware/cluster_spec_reader.hpp"

namespace bubblesim::hardware {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".json";

tl::unexpected<Errors> fault(std::string file, std::string message) {
  return tl::make_unexpected(Errors{Error{std::move(file), {}, std::move(message)}});
}

CheckedResult<std::vector<fs::path>> list_files(const std::string& folder) {
  const std::string what = "the folder of cluster files cannot be read: ";
  std::error_code code;
  fs::directory_iterator entries(folder, code);
  std::vector<fs::path> out;
  while (!code && entries != fs::directory_iterator()) {
    if (entries->path().extension() == kSuffix) out.push_back(entries->path());
    entries.increment(code);
  }
  if (code) return fault(folder, what + code.message());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

ClusterSpec with_nodes(ClusterSpec spec, std::uint32_t nodes) {
  BUBBLESIM_CHECK(nodes >= 1, "a cluster has at least one node");
  spec.nodes = nodes;
  return spec;
}

CheckedResult<ClusterSpec> read_cluster_spec(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load_file(path));
  Errors errors;
  ObjectReader root = document.root(errors);
  ClusterSpec spec = read_cluster(root);
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return spec;
}

CheckedResult<std::vector<ClusterFile>> read_cluster_folder(const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto files, list_files(folder));
  std::vector<ClusterFile> clusters;
  Errors errors;
  for (const fs::path& file : files) {
    auto spec = read_cluster_spec(file.string());
    if (spec) {
      clusters.push_back({file.stem().string(), file.string(), std::move(*spec)});
    } else {
      errors.insert(errors.end(), spec.error().begin(), spec.error().end());
    }
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return clusters;
}

CheckedResult<ClusterSpec> find_cluster_spec(std::string_view name, const std::string& folder) {
  if (name.find('/') != std::string_view::npos || name.ends_with(kSuffix)) {
    return read_cluster_spec(std::string(name));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const auto files, list_files(folder));
  std::vector<std::string> ids;
  for (const fs::path& file : files) {
    ids.push_back(file.stem().string());
    if (ids.back() == name) return read_cluster_spec(file.string());
  }
  return fault(folder, unknown_name_message("cluster", name, ids));
}

}  // namespace bubblesim::hardware
