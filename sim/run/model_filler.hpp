// Loads fillers made from a model, to serve it or to train it; internal to loading a run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/base/shared.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/program.hpp"
#include "sim/run/run_config.hpp"
#include "sim/serving/step.hpp"
#include "sim/step_cost/engine_cost.hpp"
#include "sim/synth/server_plan.hpp"

namespace bubblesim::run {

// Kernel times of a server's steps from measurements of any form.

struct MeasuredKernels {
  synth::StepKernelsMaker maker;
  CounterSet counters;  ///< uses of another GPU's times, and of times beyond the measured steps
};

using KernelTimesMaker = std::function<std::unique_ptr<step_cost::KernelTimes>()>;

struct AskedStep {
  serving::ScheduledStep step;
  std::uint32_t tokens;  ///< of the matrix products
};
/// The step with the most tokens, the most sequences and the longest contexts of the scheduler.
[[nodiscard]] AskedStep largest_step(const serving::SchedulerSpec& spec);
/// The layout of the server's GPUs for the costs of steps.
[[nodiscard]] step_cost::ServerLayout layout_of(const synth::ServerPlan& plan);

/// `asked`: steps whose times are computed, to find gaps in the measurements.
[[nodiscard]] MeasuredKernels measured_kernels(KernelTimesMaker times,
                                               const synth::ServerPlan& plan,
                                               const std::vector<AskedStep>& asked);

// Kernel times of a server's steps from a file of layer times (bubblesim.layers).

inline constexpr CounterSpec kLayersOfOneSequence{
    "layer_tables_of_one_sequence", Severity::kLoss,
    "servers of several sequences at once whose layer times were measured of one alone: how much "
    "longer each further sequence makes a step is an estimate"};

/// Faults: the first fault of the file, and those of step_cost::tables_for.
[[nodiscard]] Result<MeasuredKernels> load_layer_kernels(const std::string& path,
                                                         const synth::ServerPlan& plan);

/// A filler's program. For an engine's server: its plan, and its program before the first step.
struct ModelFiller {
  program::Program program;
  std::optional<Shared<synth::ServerPlan>> server{};
};

/// The filler's program on `device`. Sets `config.memory` to an instance's need, unless the config
/// has it. `device_folder` is devices/ of a folder of configs, with models, efficiency and software
/// beside it. Precondition: its program is a model's.
[[nodiscard]] CheckedResult<ModelFiller> load_model_filler(FillerConfig& config,
                                                           const hardware::GpuSpec& device,
                                                           const std::string& device_folder);

/// Loads a training job of one rank in the same way. Precondition: the filler's program is a
/// training job.
[[nodiscard]] CheckedResult<ModelFiller> load_train_filler(FillerConfig& config,
                                                           const hardware::GpuSpec& device,
                                                           const std::string& device_folder);

}  // namespace bubblesim::run
