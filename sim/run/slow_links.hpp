// Faults of links that a config names, as the fabric of its job takes them.
#pragma once

#include <vector>

#include "sim/base/result.hpp"
#include "sim/network/topology.hpp"
#include "sim/run/run_config.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::run {

/// Both directions of each link in `config.training.slow_links`: all up-links of a leaf, and of a
/// port where GPUs are paired that to its pair, too. Faults name the entry: a GPU that the cluster
/// lacks, a kind of link that it lacks, links that no collective of `job` loads, two faults of a
/// link at one time.
[[nodiscard]] CheckedResult<std::vector<network::SlowLink>> slow_links(
    const RunConfig& config, const network::Topology& topology, const workload::JobProgram& job);

}  // namespace bubblesim::run
