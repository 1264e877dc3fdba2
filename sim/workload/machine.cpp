#include "sim/workload/machine.hpp"

#include <algorithm>

namespace bubblesim::workload {
namespace {

// Behind a send that does not wait, a rank may meet others within the same window; behind a call of
// a thread that it shares, too.
engine::ConductorSetup conductor_setup(const JobProgram* job, engine::ConductorSetup setup) {
  if (job == nullptr) return setup;
  if (job->shared_hosts || std::ranges::any_of(job->collectives, &JoinedCollective::buffered)) {
    setup.windows = engine::Windows::kNever;
  }
  return setup;
}

}  // namespace

Machine::Machine(const hardware::GpuSpec& spec, const JobProgram* job,
                 const engine::ConductorSetup& setup)
    : spec_(spec), job_(job), conductor_(conductor_setup(job, setup)) {
  if (job == nullptr) return;
  by_place_.resize(job->ranks.size());
  network_.emplace(engine(), meetings(*job), job->links, job->slow_links);
  conductor_.set_joint(*this);
}

MachineGpu& Machine::add_gpu(const gpu::SharingSetup& sharing, const engine::ContactBound* bound) {
  engine::Engine& driving = bound == nullptr ? engine() : conductor_.add_domain(*bound);
  return *gpus_.emplace_back(std::make_unique<MachineGpu>(driving, spec_, sharing));
}

ProgramRun& Machine::add_program(MachineGpu& gpu, const program::Program& program,
                                 const RunSetup& setup) {
  const std::optional<std::uint32_t> place = place_of(program);
  RunSetup own = setup;
  if (place) {
    own.ranks = &by_place_;
    own.place = *place;
  }
  programs_.push_back(std::make_unique<ProgramRun>(gpu.engine, gpu.gpu, program, own));
  if (place) by_place_[*place] = programs_.back().get();
  if (setup.rendezvous != nullptr) ranks_.push_back(programs_.back().get());
  return *programs_.back();
}

// The place of a rank of the job among its ranks.
std::optional<std::uint32_t> Machine::place_of(const program::Program& program) const {
  if (job_ == nullptr) return std::nullopt;
  const auto& ranks = job_->ranks;
  const auto found = std::ranges::find(ranks, &program, [](const auto& rank) { return &rank; });
  if (found == ranks.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - ranks.begin());
}

SimTime Machine::next_completion(SimTime now) {
  if (network_->under_way()) return now;  // any rank may stop, and holds up the others
  next_.clear();
  for (const ProgramRun* rank : ranks_) rank->next_meetings(now, next_);
  SimTime anywhere = SimTime::max();
  for (const NextMeeting& next : next_) {
    if (next.collective == program::kNoIndex) {
      anywhere = std::min(anywhere, next.earliest);
    } else {
      network_->expect(next.collective, next.earliest);
    }
  }
  return std::min(anywhere, network_->next_completion());
}

void Machine::after_window() {
  arrivals_.clear();
  for (ProgramRun* rank : ranks_) rank->take_arrivals(arrivals_);
  network_->arrive_late(arrivals_);
}

}  // namespace bubblesim::workload
