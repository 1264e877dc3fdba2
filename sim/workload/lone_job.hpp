// A job that has its GPUs to itself: one GPU for each rank, ranks that meet in collectives, no
// policy and no filler. Replays, bubble measurements and recordings run it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/job_program.hpp"
#include "sim/workload/machine.hpp"
#include "sim/workload/program_run.hpp"

namespace bubblesim::workload {

/// How the ranks of a lone job run.
struct LoneSetup {
  Repeat repeat = Repeat::kOnePass;
  std::uint64_t passes = 0;                 ///< kLoop: as RunSetup::passes
  std::vector<Perturbation> perturbations;  ///< by rank position; may be shorter than the job
};

/// One observer for each rank, as LoneJob takes them.
template <class Observer>
[[nodiscard]] std::vector<RunObserver*> pointers_to(std::vector<Observer>& observers) {
  std::vector<RunObserver*> pointers;
  for (Observer& observer : observers) pointers.push_back(&observer);
  return pointers;
}

class LoneJob {
 public:
  /// `job`, `spec` and the observers (one for each rank, in order; null: none) outlive this.
  LoneJob(const JobProgram& job, const hardware::GpuSpec& spec, const LoneSetup& setup,
          std::span<RunObserver* const> observers);

  /// Starts every rank at its offset and runs until nothing is left to do or an observer stops the
  /// engine (ProgramRun::engine()).
  void run();

  /// Succeeds if every rank has done all of its passes. Fault: a dependency is never met; the fault
  /// names the first rank that waits for one.
  [[nodiscard]] Result<void> finished() const;

  [[nodiscard]] std::uint64_t events() const { return machine_.conductor().events(); }

 private:
  Machine machine_;
  std::vector<ProgramRun*> ranks_;
};

}  // namespace bubblesim::workload
