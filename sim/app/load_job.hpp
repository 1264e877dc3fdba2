// The job that a command reads: its traces, what they lack, and the cluster that stands in for it.
#pragma once

#include <string>
#include <vector>

#include "sim/app/app.hpp"

namespace bubblesim::app {

/// A job's traces, as a command line names them.
struct JobArguments {
  std::vector<std::string> paths;
  std::string cluster;  ///< that collectives without times run on; empty: none
};

/// Declares --cluster of a command that reads traces of any format.
void add_cluster_option(CLI::App& command, JobArguments& job);

/// Reads the traces with a progress line, on every core. Fault: a cluster that no collective needs.
[[nodiscard]] CheckedResult<run::LoadedTrace> load_job(const JobArguments& job,
                                                       const AppContext& context);

}  // namespace bubblesim::app
