// A run config with everything that it names loaded: programs, device, recorded times.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/base/shared.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/run/run_config.hpp"
#include "sim/workload/continuous_service.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::run {

struct LoadedRun {
  RunConfig config;
  hardware::GpuSpec device;
  Shared<workload::JobProgram> training;
  std::uint32_t world_size = 1;  ///< ranks of the whole job
  std::uint32_t fold = 1;        ///< ranks that each simulated one stands for
  std::optional<double> samples_per_iteration;  ///< of the whole job
  /// Device memory of each rank: the config's, else the most that its trace recorded as reserved,
  /// or the peak of a synthesised one. Empty: the config's for all.
  std::vector<std::optional<Bytes>> rank_memory;
  std::vector<Shared<program::Program>> fillers;  ///< by RunConfig::fillers
  /// Of fillers with continuous batching, by RunConfig::fillers; or empty: there is none.
  std::vector<std::optional<workload::IterationTable>> tables;
  /// If the job was recorded, and its iterations are marked.
  std::optional<Duration> recorded_mean_iteration;
  CounterSet counters;                     ///< of reading and building

  /// Of the rank at this position; nothing: not known.
  [[nodiscard]] std::optional<Bytes> memory_of(std::size_t rank) const {
    return rank_memory.empty() ? config.training.memory : rank_memory[rank];
  }
};

}  // namespace bubblesim::run
