// A run config with everything that it names loaded: programs, device, recorded times.
#pragma once

#include <optional>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/run/run_config.hpp"
#include "sim/workload/program.hpp"

namespace bubblesim::run {

struct LoadedRun {
  RunConfig config;
  hardware::GpuSpec device;
  workload::JobProgram training;
  /// Device memory of each rank: the config's, else the most that its trace recorded as reserved.
  /// Empty: the config's for all.
  std::vector<std::optional<Bytes>> rank_memory;
  std::vector<workload::Program> fillers;  ///< by RunConfig::fillers
  std::optional<Duration> recorded_mean_iteration;  ///< if iterations are marked
  CounterSet counters;                     ///< of reading and building
};

}  // namespace bubblesim::run
