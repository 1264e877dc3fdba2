#include "sim/workload/lone_job.hpp"

#include <string>

#include "sim/base/check.hpp"

namespace bubblesim::workload {

LoneJob::LoneJob(engine::Engine& engine, const JobProgram& job, const hardware::GpuSpec& spec,
                 const LoneSetup& setup, std::span<RunObserver* const> observers)
    : engine_(engine), rendezvous_(engine, meetings(job), job.links) {
  BUBBLESIM_CHECK(observers.size() == job.ranks.size(), "one observer a rank");
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    RunSetup run;
    run.client.name = "rank " + std::to_string(job.ranks[i].rank);
    run.repeat = setup.repeat;
    run.passes = setup.passes;
    if (i < setup.perturbations.size()) run.perturbation = setup.perturbations[i];
    run.rendezvous = &rendezvous_;
    run.observer = observers[i];
    gpus_.push_back(std::make_unique<gpu::Gpu>(engine, spec, gpu::SharingSetup{}));
    runs_.push_back(std::make_unique<ProgramRun>(engine, *gpus_.back(), job.ranks[i], run));
  }
}

void LoneJob::run() {
  for (const auto& run : runs_) run->start_pass(kSimStart + run->program().start_offset);
  engine_.run_until();
}

Result<void> LoneJob::finished() const {
  for (const auto& run : runs_) {
    if (run->idle()) continue;
    return fail("rank " + std::to_string(run->program().rank) + " stopped after " +
                std::to_string(to_ns(engine_.now())) + " ns with " +
                std::to_string(run->outstanding()) +
                " operations launched and not ended: a dependency of the program is never met");
  }
  return {};
}

}  // namespace bubblesim::workload
