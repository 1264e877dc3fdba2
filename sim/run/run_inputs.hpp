// A run config's loaded inputs: the part of a run that does not depend on loads, seeds, policies
// and lengths, so that many runs may share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/network/topology.hpp"
#include "sim/run/load_trace.hpp"
#include "sim/run/loaded_run.hpp"
#include "sim/run/run_config.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::run {

inline constexpr CounterSpec kMemoryUnknown{
    "run_memory_unknown", Severity::kNotice,
    "ranks and fillers whose memory neither config nor trace gives: admission takes them as "
    "fitting"};

inline constexpr CounterSpec kMemoryBelowModel{
    "run_memory_below_model", Severity::kNotice,
    "fillers whose memory by the config is less than what their model takes (weights, activations, "
    "KV cache): admission goes by the config"};

/// Length of a recorded iteration, of those that traces/iterations/job_pass.hpp chooses. Mean over
/// ranks; nothing without iterations.
[[nodiscard]] std::optional<Duration> recorded_mean(const workload::JobProgram& job);

/// The result depends only on the traces or synthesised job, and the device. `device_folder` is
/// devices/ of a folder of configs, with the parts of jobs beside it. `threads` read ranks and
/// build their programs.
[[nodiscard]] CheckedResult<LoadedTraining> load_training(const RunConfig& config,
                                                          const std::string& device_folder,
                                                          const ProgressText& progress,
                                                          std::size_t threads = 1);

/// The result depends on the filler's program and, in the text of faults, on its name.
[[nodiscard]] CheckedResult<LoadedFiller> load_filler(const FillerConfig& filler,
                                                      const hardware::GpuSpec& device,
                                                      const std::string& device_folder,
                                                      const ProgressText& progress);

/// The run without its fillers. Faults: of the config as a whole with the job: ranks, power, nodes,
/// checkpoints, memory; that of memory names larger ones of the devices in `device_folder`.
[[nodiscard]] CheckedResult<LoadedRun> assemble_run(const RunConfig& config,
                                                    std::shared_ptr<const LoadedTraining> training,
                                                    const std::string& device_folder);

/// Adds the next filler of the config.
void add_filler(LoadedRun& run, Shared<LoadedFiller> filler);

// Faults of links that a config names, as the fabric of its job takes them.

/// Both directions of each link in `config.training.slow_links`. A leaf has all its up-links; the
/// port of a paired GPU includes the link to its pair. Faults name the entry: a GPU or kind of link
/// that the cluster lacks, links that no collective of `job` uses, two faults of a link at one
/// time.
[[nodiscard]] CheckedResult<std::vector<network::SlowLink>> slow_links(
    const RunConfig& config, const network::Topology& topology, const workload::JobProgram& job);

}  // namespace bubblesim::run
