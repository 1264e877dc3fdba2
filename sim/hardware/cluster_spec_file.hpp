// Reads cluster files (configs/clusters/*.json; each key is explained in
// configs/clusters/README.md). As in device files every constant carries its unit and source, and
// all faults of a file are reported at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/cluster_spec.hpp"

namespace bubblesim::hardware {

/// A cluster file as read.
struct ClusterFile {
  std::string id;    ///< file name without ".json": "dgx-a100-80gb"
  std::string path;
  ClusterSpec spec;
};

[[nodiscard]] CheckedResult<ClusterSpec> read_cluster_spec(const std::string& path);

/// All "*.json" of a folder, ordered by id.
[[nodiscard]] CheckedResult<std::vector<ClusterFile>> read_cluster_folder(
    const std::string& folder);

/// `name` is a path (it has a "/" or ends in ".json"), else the id of a file in `folder`.
[[nodiscard]] CheckedResult<ClusterSpec> find_cluster_spec(std::string_view name,
                                                           const std::string& folder);

/// Reads every constant; faults go to the reader's error list. Ends with root.finish().
[[nodiscard]] ClusterSpec read_cluster(ObjectReader& root);

}  // namespace bubblesim::hardware
