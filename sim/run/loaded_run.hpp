// A run config with all its inputs loaded: programs, device, recorded times.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/base/shared.hpp"
#include "sim/base/time.hpp"
#include "sim/engine/conductor.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/network/topology.hpp"
#include "sim/observe/summary.hpp"
#include "sim/observe/timeline.hpp"
#include "sim/observe/usage_series.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"
#include "sim/run/fill_queue.hpp"
#include "sim/run/run_config.hpp"
#include "sim/schedule/bubble_table.hpp"
#include "sim/synth/server_plan.hpp"
#include "sim/workload/job_program.hpp"
#include "sim/workload/program_run.hpp"

namespace bubblesim::run {

/// The training job of a config: the part of a run that does not depend on loads, seeds, policies
/// and lengths, so that many runs may share it.
struct LoadedTraining {
  hardware::GpuSpec device;
  Shared<workload::JobProgram> training;
  /// The links of the job's cluster, on which rank n has GPU n; nothing: not known.
  std::optional<Shared<network::Topology>> topology;
  std::uint32_t world_size = 1;  ///< ranks of the whole job
  std::uint32_t fold = 1;        ///< ranks that each simulated one represents
  std::optional<double> samples_per_iteration;  ///< of the whole job
  /// In iterations, if the plan writes checkpoints; the config's value overrides it.
  std::optional<std::uint64_t> checkpoint_every;
  /// Device memory of each rank: the most reserved in its trace, or the peak of a synthesised rank;
  /// in a LoadedRun the config's, if it says. Empty: the config's for all.
  std::vector<std::optional<Bytes>> rank_memory;
  /// Mean iteration as recorded, if the job was recorded and its iterations are marked.
  std::optional<Duration> recorded_mean_iteration;
  CounterSet counters;  ///< of reading and building
};

/// A filler of a config: the part that does not depend on loads, seeds, policies and lengths.
struct LoadedFiller {
  program::Program program;
  std::optional<Bytes> memory{};  ///< of an instance, by its model
  /// The plan of an engine's server, whose requests join and leave between passes, so that passes
  /// differ; the program is the one before its first step.
  std::optional<Shared<synth::ServerPlan>> server{};
};

/// The values of its config take precedence over those of the job alone.
struct LoadedRun : LoadedTraining {
  RunConfig config;
  bool lone = false;  ///< one rank by itself (lone_rank.hpp): no other GPU has fillers
  std::vector<Shared<LoadedFiller>> fillers;  ///< by RunConfig::fillers

  /// Null: not an engine's server.
  [[nodiscard]] const synth::ServerPlan* server(std::size_t filler) const {
    const auto& plan = fillers[filler]->server;
    return plan ? &**plan : nullptr;
  }
  /// Memory of the rank at this position; nothing: not known.
  [[nodiscard]] std::optional<Bytes> memory_of(std::size_t rank) const {
    return rank_memory.empty() ? config.training.memory : rank_memory[rank];
  }
};

/// Applies a straggler of the config to its rank.
inline void slow(workload::Perturbation& rank, const Straggler& straggler) {
  rank.slowdown = straggler.slowdown;
  rank.from = kSimStart + straggler.from;
  rank.until = straggler.until ? kSimStart + *straggler.until : SimTime::max();
}

/// The config's effects on a rank, without jitter.
[[nodiscard]] inline workload::Perturbation perturbation_of(const TrainingConfig& training,
                                                            std::uint32_t rank) {
  workload::Perturbation out;
  for (const Straggler& straggler : training.stragglers) {
    if (straggler.rank == rank) slow(out, straggler);
  }
  for (const JobFault& fault : training.faults) {
    out.outages.push_back({kSimStart + fault.at, kSimStart + fault.end()});
  }
  return out;
}

/// The inputs for the training results of the config's job, after a run of this length.
[[nodiscard]] inline observe::TrainingScale scale_of(const LoadedRun& run, Duration simulated,
                                                     std::optional<double> alone_iterations_per_s) {
  observe::TrainingScale scale{run.samples_per_iteration, alone_iterations_per_s};
  for (const JobFault& fault : run.config.training.faults) scale.faults.push_back(fault.at);
  scale.checkpoint_every =
      run.config.training.checkpoint_every.value_or(run.checkpoint_every.value_or(1));
  scale.simulated = simulated;
  return scale;
}

/// The rank at this position, for a policy.
[[nodiscard]] inline policy::ClientInfo rank_info(const LoadedRun& run, std::size_t rank) {
  policy::ClientInfo info;
  info.role = policy::Role::kTraining;
  info.name = "training rank " + std::to_string(run.training->ranks[rank].rank);
  info.memory = run.memory_of(rank).value_or(Bytes{});
  info.memory_known = run.memory_of(rank).has_value();
  // Folded ranks count: each has a GPU, with fillers.
  const auto simulated = static_cast<std::uint32_t>(run.training->ranks.size());
  info.ranks = run.lone ? 1 : std::max(run.world_size, simulated);
  return info;
}

/// A filler on a GPU, for a policy; the caller sets `id`, `queued` and `pass`.
[[nodiscard]] inline policy::ClientInfo filler_info(const FillerConfig& filler) {
  policy::ClientInfo info;
  info.role = role_of(filler);
  info.name = filler.name;
  info.memory = filler.memory.value_or(Bytes{});
  info.memory_known = filler.memory.has_value();
  return info;
}

// The part of a loaded run that is simulated, and options.

/// The jobs to run. Nothing set: the training job alone.
struct RunScenario {
  const policy::PolicySpec* policy = nullptr;  ///< null: all clients are admitted
  const policy::ParameterSet* parameters = nullptr;
  const std::vector<schedule::BubbleTable>* bubbles = nullptr;  ///< if the policy needs them
  std::vector<std::uint32_t> fillers;   ///< into RunConfig::fillers
  /// Alone on a GPU, by RunConfig::fillers; null: not measured.
  const std::vector<FillerProfile>* profiles = nullptr;
  Duration iteration{};                 ///< of training alone; 0: not measured
  bool training = true;
  Duration limit = Duration::max();     ///< a run for iterations is cut here (and counted)
  observe::TimelineRecorder* timeline = nullptr;
  observe::UsageSetup usage{};          ///< recorded in PolicyResult::usage; changes nothing else
  const std::atomic<bool>* stop = nullptr;  ///< once true, run() ends soon with a fault; null:
                                            ///< never
  /// Simulated time is added here as it passes, up to `expected`; null: not counted.
  std::atomic<std::int64_t>* passed_ns = nullptr;
  Duration expected{};
  /// How GPUs are simulated in parallel. Changes no result. A timeline sees every event in order.
  engine::ConductorSetup gpus{};
};

}  // namespace bubblesim::run
