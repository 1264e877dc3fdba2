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
  return read_whole_file(path, read_cluster);
}

CheckedResult<std::vector<ClusterFile>> read_cluster_folder(const std::string& folder) {
  return read_data_folder(folder, "cluster",
                          [](const std::string& path) -> CheckedResult<ClusterFile> {
                            BUBBLESIM_ASSIGN_OR_RETURN(ClusterSpec spec, read_cluster_spec(path));
                            return ClusterFile{data_file_id(path), path, std::move(spec)};
                          });
}

CheckedResult<ClusterSpec> find_cluster_spec(std::string_view name, const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path, find_data_file(name, folder, "cluster"));
  return read_cluster_spec(path);
}

}  // namespace bubblesim::hardware
