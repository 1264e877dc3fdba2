// Inside of cluster_spec_file: the constants of one cluster file.
#pragma once

#include "sim/base/json_reader.hpp"
#include "sim/hardware/cluster_spec.hpp"

namespace bubblesim::hardware {

/// Reads every constant; faults go to the reader's error list. Ends with root.finish().
[[nodiscard]] ClusterSpec read_cluster(ObjectReader& root);

}  // namespace bubblesim::hardware
