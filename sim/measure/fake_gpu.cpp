#include "sim/measure/fake_gpu.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "sim/measure/fake_job.hpp"
#include "sim/schedule/gpu_plan.hpp"
#include "sim/workload/machine.hpp"

namespace bubblesim::measure {
namespace {

using capture::HostTime;

/// What lives for one run.
struct Run {
  Run(capture::HostClock& host_clock, const hardware::GpuSpec& spec,
      const gpu::SharingSetup& sharing)
      : clock(host_clock), machine(spec), gpu(machine.add_gpu(sharing)) {}

  capture::HostClock& clock;
  std::unique_ptr<capture::FakeSegment> memory;
  workload::Machine machine;
  workload::MachineGpu& gpu;
  FakeTime time;
  std::vector<std::unique_ptr<FakeJob>> jobs;
  std::vector<ClientId> clients;  ///< of `jobs`
  HostTime begin{};
};

policy::ClientSharing share_of(const capture::RigJob& job,
                               const std::vector<policy::ClientSharing>& shares) {
  if (job.plan.client.index() < shares.size()) return shares[job.plan.client.index()];
  policy::ClientSharing share;
  share.sm_percentage = job.sm_percentage;
  share.priority = job.plan.priority;
  share.sms = job.plan.sms;
  return share;
}

std::vector<const capture::RigJob*> by_client(const capture::RigSetup& setup) {
  std::vector<const capture::RigJob*> jobs;
  for (const capture::RigJob& job : setup.jobs) jobs.push_back(&job);
  std::ranges::stable_sort(jobs, {}, [](const capture::RigJob* job) { return job->plan.client; });
  return jobs;
}

class ModelledGpu final : public capture::FakeGpu {
 public:
  ModelledGpu(const hardware::GpuSpec& spec, const FakeGpuFaults& faults)
      : spec_(spec), faults_(faults) {}

  [[nodiscard]] Result<std::string> begin(
      capture::HostClock& clock, const capture::RigSetup& setup, const policy::Sharing& sharing,
      const std::vector<policy::ClientSharing>& shares) override;
  void run() override;
  void stop() override {
    stopped_.store(true);
    run_->clock.ring(run_->memory->header().to_device);
  }

 private:
  Result<void> open_memory(const std::vector<const capture::RigJob*>& jobs,
                           const policy::Sharing& sharing);
  [[nodiscard]] HostTime step(HostTime now);
  void stall_job(HostTime now);
  [[nodiscard]] std::optional<HostTime> stand_still(HostTime now);
  void run_engine(HostTime until);

  hardware::GpuSpec spec_;
  FakeGpuFaults faults_;
  std::atomic<bool> stopped_{false};
  std::unique_ptr<Run> run_;
  bool job_stalled_ = false;
  bool stood_still_ = false;
};

Result<std::string> ModelledGpu::begin(capture::HostClock& clock, const capture::RigSetup& setup,
                                       const policy::Sharing& sharing,
                                       const std::vector<policy::ClientSharing>& shares) {
  stopped_.store(false);
  job_stalled_ = stood_still_ = false;
  run_ = std::make_unique<Run>(clock, spec_, schedule::gpu_sharing(sharing, spec_));
  run_->begin = clock.now();
  const auto jobs = by_client(setup);
  BUBBLESIM_RETURN_IF_ERROR(open_memory(jobs, sharing));
  const Duration notice = spec_.completion_notice + faults_.late_notices;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const capture::JobPlan& plan = jobs[i]->plan;
    run_->clients.push_back(plan.client);
    run_->jobs.push_back(std::make_unique<FakeJob>(
        run_->machine, run_->gpu,
        schedule::gpu_client(plan.name, share_of(*jobs[i], shares), sharing, spec_), plan,
        run_->memory->job(i), clock, run_->time, notice));
  }
  return "fake:" + run_->memory->name();
}

Result<void> ModelledGpu::open_memory(const std::vector<const capture::RigJob*>& jobs,
                                      const policy::Sharing& sharing) {
  if (jobs.size() > capture::kMostGateClients) {
    return fail("found " + std::to_string(jobs.size()) + " jobs on a fake GPU, expected at most " +
                std::to_string(capture::kMostGateClients));
  }
  std::vector<capture::FakeJobSize> sizes;
  for (const capture::RigJob* job : jobs) {
    sizes.push_back({job->plan.client, static_cast<std::uint32_t>(job->plan.program.ops.size()),
                     job->plan.program.stream_count});
  }
  BUBBLESIM_ASSIGN_OR_RETURN(run_->memory, capture::FakeSegment::create(run_->clock, sizes));
  if (!sharing.unified_memory) run_->memory->header().memory = spec_.memory.value;
  return {};
}

void ModelledGpu::run() {
  capture::Bell& bell = run_->memory->header().to_device;
  while (!stopped_.load()) {
    const std::uint32_t seen = bell.rings.load();
    run_->clock.wait(bell, seen, step(run_->clock.now()));
  }
}

/// Does what is due; returns when to look again.
HostTime ModelledGpu::step(HostTime now) {
  stall_job(now);
  if (const auto until = stand_still(now)) return *until;
  for (const auto& job : run_->jobs) job->take_launches();
  run_engine(now);
  for (const auto& job : run_->jobs) job->settle();
  const auto next = run_->machine.conductor().next_due();
  return next ? run_->time.host(*next) : HostTime::max();
}

void ModelledGpu::run_engine(HostTime until) {
  const SimTime limit = run_->time.sim(until);
  engine::Conductor& conductor = run_->machine.conductor();
  if (limit >= conductor.now()) conductor.run_until(limit);
}

void ModelledGpu::stall_job(HostTime now) {
  if (!faults_.job_stall || job_stalled_ || now < run_->begin + faults_.job_stall->at) return;
  job_stalled_ = true;
  run_engine(run_->begin + faults_.job_stall->at);
  for (std::size_t i = 0; i < run_->jobs.size(); ++i) {
    if (run_->clients[i] == faults_.job_stall->client) run_->jobs[i]->freeze();
  }
}

// Nothing is looked at in between: launches of that time are taken after it.
std::optional<HostTime> ModelledGpu::stand_still(HostTime now) {
  if (!faults_.device_stall || stood_still_) return std::nullopt;
  const HostTime from = run_->begin + faults_.device_stall->at;
  if (now < from) return std::nullopt;
  run_engine(from);
  const HostTime until = from + faults_.device_stall->length;
  if (now < until) return until;
  stood_still_ = true;
  run_->time.since = run_->time.sim(from);
  run_->time.still += faults_.device_stall->length;
  return std::nullopt;
}

}  // namespace

std::unique_ptr<capture::FakeGpu> make_fake_gpu(const hardware::GpuSpec& spec,
                                                const FakeGpuFaults& faults) {
  return std::make_unique<ModelledGpu>(spec, faults);
}

}  // namespace bubblesim::measure
