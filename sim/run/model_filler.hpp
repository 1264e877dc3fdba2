// Loads fillers made from a model, to serve it or to train it; internal to loading a run.
#pragma once

#include <string>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/run/run_config.hpp"
#include "sim/run/run_inputs.hpp"
#include "sim/synth/server_plan.hpp"

namespace bubblesim::run {

/// Kernel times of a server's steps from measurements of any form.
struct MeasuredKernels {
  synth::StepKernelsMaker maker;
  CounterSet counters;  ///< uses of another GPU's times, and of times beyond the measured steps
};

// Kernel times of a server's steps from a file of layer times (bubblesim.layers).

inline constexpr CounterSpec kLayersOfOneSequence{
    "layer_tables_of_one_sequence", Severity::kLoss,
    "servers of several sequences at once whose layer times were measured of one alone: how much "
    "longer each further sequence makes a step is an estimate"};

/// Faults: the first fault of the file, and those of step_cost::tables_for.
[[nodiscard]] Result<MeasuredKernels> load_layer_kernels(const std::string& path,
                                                         const synth::ServerPlan& plan);

/// The filler's program on `device`, and an instance's need of memory, whatever the config says of
/// it. `device_folder` is devices/ of a folder of configs, with models, efficiency and software
/// beside it. Precondition: its program is a model's.
[[nodiscard]] CheckedResult<LoadedFiller> load_model_filler(const FillerConfig& config,
                                                            const hardware::GpuSpec& device,
                                                            const std::string& device_folder);

/// Loads a training job of one rank in the same way. Precondition: the filler's program is a
/// training job.
[[nodiscard]] CheckedResult<LoadedFiller> load_train_filler(const FillerConfig& config,
                                                            const hardware::GpuSpec& device,
                                                            const std::string& device_folder);

}  // namespace bubblesim::run
