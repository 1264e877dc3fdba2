// Turns the slow links that a config names into faults of the job's network.
#pragma once

#include <vector>

#include "sim/base/result.hpp"
#include "sim/network/topology.hpp"
#include "sim/run/run_config.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::run {

/// The links of `config.training.slow_links`, each in both directions. A leaf stands for all its
/// up-links; a port also for the link to its GPU's pair, where GPUs are paired. Faults, each with
/// its entry: the cluster lacks the GPU or this kind of link, no collective of `job` loads the
/// link, or two entries slow one link at one time.
[[nodiscard]] CheckedResult<std::vector<network::SlowLink>> slow_links(
    const RunConfig& config, const network::Topology& topology, const workload::JobProgram& job);

}  // namespace bubblesim::run
