// A job that has its GPUs to itself: one GPU a rank, ranks that meet in collectives, no policy and
// no filler. The one set-up behind replays, bubble measurements and recordings.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/engine/engine.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/network/rendezvous.hpp"
#include "sim/workload/job_program.hpp"
#include "sim/workload/program_run.hpp"

namespace bubblesim::workload {

/// How the ranks of a lone job run.
struct LoneSetup {
  Repeat repeat = Repeat::kOnePass;
  std::uint64_t passes = 0;                 ///< kLoop: as RunSetup::passes
  std::vector<Perturbation> perturbations;  ///< by position of the rank; missing ones: none
};

class LoneJob {
 public:
  /// `engine` is fresh; `job` and the observers (one a rank, in their order) outlive this.
  LoneJob(engine::Engine& engine, const JobProgram& job, const hardware::GpuSpec& spec,
          const LoneSetup& setup, std::span<RunObserver* const> observers);

  /// Starts every rank at its offset and runs until nothing is left to do or the engine stops.
  void run();

  /// Whether every rank has done all of its passes. Fault: a dependency is never met; with the
  /// first rank that waits for one.
  [[nodiscard]] Result<void> finished() const;

 private:
  engine::Engine& engine_;
  network::Rendezvous rendezvous_;
  std::vector<std::unique_ptr<gpu::Gpu>> gpus_;
  std::vector<std::unique_ptr<ProgramRun>> runs_;
};

}  // namespace bubblesim::workload
