#include "sim/measure/fake_gpu.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/fake/fake_segment.hpp"
#include "capture/replay/job_plan.hpp"
#include "sim/engine/engine.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/measure/job_plans.hpp"
#include "sim/program/program.hpp"
#include "sim/schedule/gpu_plan.hpp"
#include "sim/workload/machine.hpp"

namespace bubblesim::measure {
namespace {

// A job on a fake GPU: hands over what its process launched, at the time of the launch, to a run of
// the job's program, and says in shared memory what has started and ended.
//
// Streams are the run's, as in any simulation, so that a plan made from a program takes the same
// time, to the nanosecond.

/// The place of the engine's time in the clock's: later by as long as the device has stood still.
struct FakeTime {
  Duration still{};
  SimTime since{};  ///< of the last time that it stood still
  [[nodiscard]] capture::HostTime host(SimTime time) const {
    return capture::HostTime{time.time_since_epoch() + still};
  }
  [[nodiscard]] SimTime sim(capture::HostTime time) const {
    return std::max(since, SimTime{time.time_since_epoch() - still});
  }
};

using capture::FakeLaunch;
using capture::HostTime;
using capture::JobPlan;

std::int64_t nanoseconds_of(HostTime time) { return time.time_since_epoch().count(); }

/// JobPlan::device_lags: how long the operation lasts alone.
Duration own_duration(const JobPlan& plan, const program::Op& op, const hardware::GpuSpec& spec) {
  if (op.kind != program::WorkKind::kCopy || op.duration > Duration{}) return op.duration;
  const capture::CopyForm copy = capture::copy_of(plan, op);
  const auto bytes = static_cast<double>(copy.bytes.value);
  const double seconds = copy.path == capture::CopyPath::kDeviceToDevice
                             ? 2 * bytes / (spec.dram_bandwidth.value * spec.dram_reach)
                             : bytes / spec.host_bandwidth.value;
  return Duration{std::llround(seconds * 1e9)};
}

/// What the device runs: the plan's operations, for a probe with the device's own spans. It has no
/// host threads, which are another process's, and its collectives meet no other rank.
program::Program program_of(const JobPlan& plan, const hardware::GpuSpec& spec) {
  program::Program program = plan.program;
  program.threads.clear();
  for (const capture::KernelForm& form : plan.forms) {
    program.profiles.push_back(plan.device_lags ? class_profile_of(form, spec)
                                                : profile_of(form, spec));
  }
  program.result_slots = static_cast<std::uint32_t>(program.ops.size());
  for (std::uint32_t i = 0; i < program.result_slots; ++i) {
    program::Op& op = program.ops[i];
    op.result_slot = i;
    op.collective = program::kNoIndex;
    if (plan.device_lags) {
      op.duration = own_duration(plan, op, spec);
      op.launch_lag = program::short_span(spec.launch_latency);
      op.gap = program::short_span(spec.stream_gap);
    }
    if (!is_kernel(op.kind)) op.profile = program::kNoIndex;  // it is into the plan's copies
  }
  return program;
}

class FakeJob final : public workload::RunObserver, public engine::EventHandler {
 public:
  /// All references but `plan` outlive the job; `notice` passes from an end to the host's knowledge
  /// of it.
  FakeJob(workload::Machine& machine, workload::MachineGpu& gpu, const gpu::ClientSetup& setup,
          const capture::JobPlan& plan, capture::FakeJobPart& part, capture::HostClock& clock,
          const FakeTime& time, Duration notice)
      : engine_(gpu.engine), gpu_(gpu.gpu), program_(program_of(plan, machine.spec())), part_(part),
        clock_(clock), time_(time), notice_(notice), client_(plan.client),
        launched_(plan.program.stream_count),
        entity_(engine_.add_entity(*this, engine::Phase::kHost)) {
    workload::RunSetup run;
    run.client = setup;
    run.repeat = workload::Repeat::kOnePass;
    run.observer = this;
    run_ = &machine.add_program(gpu, program_, run);
    if (plan.device_lags) part.sync = to_ns(machine.spec().sync_latency);
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      if (program_.ops[i].profile == program::kNoIndex) continue;
      const program::Residency& residency = program_.profiles[program_.ops[i].profile].residency;
      part.ops()[i].resident = std::uint64_t{residency.blocks_per_sm} * machine.spec().sm_count;
    }
  }

  /// Puts what the process has launched on its streams, each launch at its time.
  void take_launches() {
    if (frozen_ || part_.launches.empty()) return;
    while (!part_.launches.empty()) {
      const FakeLaunch launch = part_.launches.front();
      part_.launches.pop();
      const auto later = std::ranges::upper_bound(arriving_, launch.at, {}, &FakeLaunch::at);
      arriving_.insert(later, launch);
    }
    await_launch();
    clock_.ring(part_.room);
  }
  /// Once no launch comes any more: says when nothing that was launched will run any more.
  void settle() {
    if (part_.no_more.load() == 0 || part_.quiet.load() != 0 || !part_.launches.empty()) return;
    const bool open = std::ranges::any_of(launched_, [](const auto& ops) { return !ops.empty(); });
    if (!arriving_.empty() || !run_->stands_still() || (frozen_ && open)) return;
    part_.quiet.store(1);
    clock_.ring(part_.end);
  }
  /// The device stops answering this job: no kernel of it starts, and it hears of nothing any more.
  void freeze() {
    frozen_ = true;
    gpu_.preempt(run_->client(), program::Preemption::kAfterKernel);
  }

  [[nodiscard]] ClientId client() const { return client_; }

  /// The next launch has come.
  void on_event(SimTime now) override {
    const FakeLaunch launch = arriving_.front();
    arriving_.pop_front();
    for (std::uint32_t i = 0; i < launch.count; ++i) {
      launched_[program_.ops[launch.op + i].stream].push_back(
          {launch.op + i, launch.pass, launch.launch, launch.takes_place && i == 0});
    }
    run_->launch({launch.op, launch.count, launch.pass, launch.launch, launch.factor}, now);
    await_launch();
  }
  void on_op_started(workload::ProgramRun& /*run*/, std::uint32_t op, SimTime now) override {
    if (!frozen_) tell(part_.starts, launched_[program_.ops[op].stream].front(), now, now, {});
  }
  void on_op_finished(const workload::OpRecord& record) override {
    if (frozen_) return;
    const std::uint32_t stream = program_.ops[record.op].stream;
    const Launched done = launched_[stream].front();
    launched_[stream].pop_front();
    tell(part_.ends, done, record.start, record.end, notice_);
    capture::FakeStream& shared = part_.streams()[stream];
    if (done.takes_place) shared.queued.fetch_sub(1);
    shared.ended.fetch_add(1);
    part_.ops()[done.op].ended.fetch_add(1);
    if (part_.waiting.load() > 0) clock_.ring(part_.end);
  }

 private:
  /// An operation of a stream whose end the process has not been told.
  struct Launched {
    std::uint32_t op = 0;
    std::uint64_t pass = 0;
    std::uint64_t launch = 0;
    bool takes_place = false;  ///< in the stream's queue
  };
  using Notices = decltype(capture::FakeJobPart::ends);

  void await_launch() {
    if (arriving_.empty()) return;
    const SimTime at = time_.sim(HostTime{Duration{arriving_.front().at}});
    engine_.schedule(entity_, std::max(at, engine_.now()));
  }
  void tell(Notices& notices, const Launched& launched, SimTime start, SimTime end, Duration late) {
    if (part_.watched.load() == 0) return;
    if (notices.full()) {
      part_.notices_lost.fetch_add(1);
      return;
    }
    const HostTime host_end = time_.host(end);
    notices.push({launched.op, launched.pass, launched.launch, nanoseconds_of(time_.host(start)),
                  nanoseconds_of(host_end), nanoseconds_of(host_end + late)});
    clock_.ring(part_.news);
  }

  engine::Engine& engine_;
  gpu::Gpu& gpu_;
  program::Program program_;
  capture::FakeJobPart& part_;
  capture::HostClock& clock_;
  const FakeTime& time_;
  Duration notice_;
  ClientId client_;
  std::vector<std::deque<Launched>> launched_;  ///< by stream, in its order
  std::deque<capture::FakeLaunch> arriving_;    ///< by time
  engine::EntityId entity_;
  workload::ProgramRun* run_ = nullptr;
  bool frozen_ = false;
};

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
  HostTime begin{};
};

class ModelledGpu final : public capture::FakeGpu {
 public:
  ModelledGpu(const hardware::GpuSpec& spec, const FakeGpuFaults& faults)
      : spec_(spec), faults_(faults) {}

  [[nodiscard]] Result<std::string> begin(capture::HostClock& clock,
                                          const capture::RigSetup& setup) override {
    stopped_.store(false);
    job_stalled_ = stood_still_ = false;
    run_ = std::make_unique<Run>(clock, spec_, schedule::gpu_sharing(setup.sharing, spec_));
    run_->begin = clock.now();
    BUBBLESIM_RETURN_IF_ERROR(open_memory(setup.jobs, setup.sharing));
    const Duration notice = spec_.completion_notice + faults_.late_notices;
    for (std::size_t i = 0; i < setup.jobs.size(); ++i) {
      const JobPlan& plan = setup.jobs[i];
      run_->jobs.push_back(std::make_unique<FakeJob>(
          run_->machine, run_->gpu,
          schedule::gpu_client(plan.name, setup.shares[plan.client.index()], setup.sharing, spec_),
          plan, run_->memory->job(i), clock, run_->time, notice));
    }
    return "fake:" + run_->memory->name();
  }
  void run() override {
    capture::Bell& bell = run_->memory->header().to_device;
    while (!stopped_.load()) {
      const std::uint32_t seen = bell.rings.load();
      run_->clock.wait(bell, seen, step(run_->clock.now()));
    }
  }
  void stop() override {
    stopped_.store(true);
    run_->clock.ring(run_->memory->header().to_device);
  }

 private:
  Result<void> open_memory(const std::vector<JobPlan>& jobs, const policy::Sharing& sharing) {
    if (jobs.size() > capture::kMostGateClients) {
      return fail("found " + std::to_string(jobs.size()) +
                  " jobs on a fake GPU, expected at most " +
                  std::to_string(capture::kMostGateClients));
    }
    std::vector<capture::FakeJobSize> sizes;
    for (const JobPlan& job : jobs) {
      sizes.push_back({job.client, static_cast<std::uint32_t>(job.program.ops.size()),
                       job.program.stream_count});
    }
    BUBBLESIM_ASSIGN_OR_RETURN(run_->memory, capture::FakeSegment::create(run_->clock, sizes));
    if (!sharing.unified_memory) run_->memory->header().memory = spec_.memory.value;
    return {};
  }
  /// Does what is due; returns when to look again.
  [[nodiscard]] HostTime step(HostTime now) {
    stall_job(now);
    if (const auto until = stand_still(now)) return *until;
    for (const auto& job : run_->jobs) job->take_launches();
    run_engine(now);
    for (const auto& job : run_->jobs) job->settle();
    const auto next = run_->machine.conductor().next_due();
    return next ? run_->time.host(*next) : HostTime::max();
  }
  void stall_job(HostTime now) {
    if (!faults_.job_stall || job_stalled_ || now < run_->begin + faults_.job_stall->at) return;
    job_stalled_ = true;
    run_engine(run_->begin + faults_.job_stall->at);
    for (const auto& job : run_->jobs) {
      if (job->client() == faults_.job_stall->client) job->freeze();
    }
  }
  /// Nothing is looked at in between: launches of that time are taken after it.
  [[nodiscard]] std::optional<HostTime> stand_still(HostTime now) {
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
  void run_engine(HostTime until) {
    const SimTime limit = run_->time.sim(until);
    engine::Conductor& conductor = run_->machine.conductor();
    if (limit >= conductor.now()) conductor.run_until(limit);
  }

  hardware::GpuSpec spec_;
  FakeGpuFaults faults_;
  std::atomic<bool> stopped_{false};
  std::unique_ptr<Run> run_;
  bool job_stalled_ = false;
  bool stood_still_ = false;
};

}  // namespace

std::unique_ptr<capture::FakeGpu> make_fake_gpu(const hardware::GpuSpec& spec,
                                                const FakeGpuFaults& faults) {
  return std::make_unique<ModelledGpu>(spec, faults);
}

}  // namespace bubblesim::measure
