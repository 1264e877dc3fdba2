#include "sim/workload/lone_job.hpp"

#include <string>

#include "sim/base/check.hpp"

namespace bubblesim::workload {

LoneJob::LoneJob(const JobProgram& job, const hardware::GpuSpec& spec, const LoneSetup& setup,
                 std::span<RunObserver* const> observers)
    : machine_(spec, &job) {
  BUBBLESIM_CHECK(observers.size() == job.ranks.size(), "one observer a rank");
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    RunSetup run;
    run.client.name = "rank " + std::to_string(job.ranks[i].rank);
    run.repeat = setup.repeat;
    run.passes = setup.passes;
    if (i < setup.perturbations.size()) run.perturbation = setup.perturbations[i];
    run.rendezvous = machine_.network();
    run.observer = observers[i];
    ranks_.push_back(&machine_.add_program(machine_.add_gpu(), job.ranks[i], run));
  }
}

void LoneJob::run() {
  for (ProgramRun* rank : ranks_) rank->start_pass(kSimStart + rank->program().start_offset);
  machine_.conductor().run_until();
}

Result<void> LoneJob::finished() const {
  for (const ProgramRun* rank : ranks_) {
    if (rank->idle()) continue;
    return fail("rank " + std::to_string(rank->program().rank) + " stopped after " +
                std::to_string(to_ns(machine_.conductor().now())) + " ns with " +
                std::to_string(rank->outstanding()) +
                " operations launched and not ended: a dependency of the program is never met");
  }
  return {};
}

}  // namespace bubblesim::workload
