// Inside of loading a run: the training job of a config, from traces or synthesised.
#pragma once

#include <string>

#include "sim/run/load_trace.hpp"
#include "sim/run/loaded_run.hpp"

namespace bubblesim::run {

inline constexpr CounterSpec kMemoryUnknown{
    "run_memory_unknown", Severity::kNotice,
    "ranks and fillers whose memory neither config nor trace gives: admission takes them as "
    "fitting"};

/// Sets everything of `loaded` that follows from its config's training job. `device_folder` is
/// devices/ of a folder of configs: a synthesised job's model, plan and cluster are beside it.
[[nodiscard]] CheckedResult<void> load_training(LoadedRun& loaded,
                                                const std::string& device_folder,
                                                const ProgressText& progress);

}  // namespace bubblesim::run
