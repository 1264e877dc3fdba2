#include "sim/app/load_job.hpp"

#include <CLI/CLI.hpp>

namespace bubblesim::app {

void add_cluster_option(CLI::App& command, JobArguments& job) {
  command.add_option("--cluster", job.cluster,
                     "Of Chakra traces whose collectives have sizes and no times: the cluster to "
                     "simulate them on, rank n on its GPU n (bubblesim clusters, or a file)");
}

CheckedResult<run::LoadedTrace> load_job(const JobArguments& job, const AppContext& context) {
  ProgressLine progress;
  std::optional<std::string> cluster;
  if (!job.cluster.empty()) cluster = job.cluster;
  return run::load_trace_on(job.paths, cluster, context.config_folder + "/clusters",
                            progress.callback(), threads_of(0));
}

}  // namespace bubblesim::app
