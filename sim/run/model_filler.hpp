// Inside of loading a run: fillers that are made from a model, to serve it or to train it.
#pragma once

#include <optional>
#include <string>

#include "sim/base/result.hpp"
#include "sim/base/shared.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/program.hpp"
#include "sim/run/run_config.hpp"
#include "sim/synth/server_plan.hpp"

namespace bubblesim::run {

/// A program. For an engine's server: its plan, and the program of its steps before any is set.
struct ModelFiller {
  program::Program program;
  std::optional<Shared<synth::ServerPlan>> server{};
};

/// The filler's program on `device`. Sets `config.memory` to what an instance takes, unless the
/// config says it. `device_folder` is devices/ of a folder of configs: models, efficiency and
/// software are beside it. Precondition: its program is a model's.
[[nodiscard]] CheckedResult<ModelFiller> load_model_filler(FillerConfig& config,
                                                           const hardware::GpuSpec& device,
                                                           const std::string& device_folder);

/// Loads a training job of one rank in the same way. Precondition: its program is one.
[[nodiscard]] CheckedResult<ModelFiller> load_train_filler(FillerConfig& config,
                                                           const hardware::GpuSpec& device,
                                                           const std::string& device_folder);

}  // namespace bubblesim::run
