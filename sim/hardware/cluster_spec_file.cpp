#include "sim/hardware/cluster_spec_file.hpp"

#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/data_file.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/hardware/cluster_spec_reader.hpp"

namespace bubblesim::hardware {

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
  BUBBLESIM_ASSIGN_OR_RETURN(const auto files, list_data_files(folder, "cluster"));
  std::vector<ClusterFile> clusters;
  Errors errors;
  for (const std::string& file : files) {
    auto spec = read_cluster_spec(file);
    if (spec) {
      clusters.push_back({data_file_id(file), file, std::move(*spec)});
    } else {
      errors.insert(errors.end(), spec.error().begin(), spec.error().end());
    }
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return clusters;
}

CheckedResult<ClusterSpec> find_cluster_spec(std::string_view name, const std::string& folder) {
  if (is_file_path(name)) return read_cluster_spec(std::string(name));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto files, list_data_files(folder, "cluster"));
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path,
                             pick_data_file(name, files, folder, "cluster"));
  return read_cluster_spec(path);
}

}  // namespace bubblesim::hardware
