#include "sim/measure/fake_job.hpp"

#include <algorithm>
#include <cmath>

#include "sim/measure/kernel_forms.hpp"

namespace bubblesim::measure {
namespace {

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

/// What the device runs: the plan's operations, for a probe with the device's own spans. Its host
/// threads are another process's, and whoever its collectives met is not there.
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

}  // namespace

FakeJob::FakeJob(workload::Machine& machine, workload::MachineGpu& gpu,
                 const gpu::ClientSetup& setup, const JobPlan& plan, capture::FakeJobPart& part,
                 capture::HostClock& clock, const FakeTime& time, Duration notice)
    : engine_(gpu.engine), gpu_(gpu.gpu), program_(program_of(plan, machine.spec())), part_(part),
      clock_(clock), time_(time), notice_(notice), launched_(plan.program.stream_count),
      entity_(engine_.add_entity(*this, engine::Phase::kHost)) {
  workload::RunSetup run;
  run.client = setup;
  run.repeat = workload::Repeat::kOnePass;
  run.observer = this;
  run_ = &machine.add_program(gpu, program_, run);
  if (plan.device_lags) part.sync = to_ns(machine.spec().sync_latency);
  const auto resident = part.resident();
  for (std::size_t i = 0; i < program_.ops.size(); ++i) {
    if (program_.ops[i].profile == program::kNoIndex) continue;
    const program::Residency& residency = program_.profiles[program_.ops[i].profile].residency;
    resident[i] = std::uint64_t{residency.blocks_per_sm} * machine.spec().sm_count;
  }
}

void FakeJob::take_launches() {
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

void FakeJob::await_launch() {
  if (arriving_.empty()) return;
  const SimTime at = time_.sim(HostTime{Duration{arriving_.front().at}});
  engine_.schedule(entity_, std::max(at, engine_.now()));
}

void FakeJob::on_event(SimTime now) {
  const FakeLaunch launch = arriving_.front();
  arriving_.pop_front();
  for (std::uint32_t i = 0; i < launch.count; ++i) {
    launched_[program_.ops[launch.op + i].stream].push_back(
        {launch.op + i, launch.pass, launch.launch, launch.takes_place && i == 0});
  }
  run_->launch({launch.op, launch.count, launch.pass, launch.launch, launch.factor}, now);
  await_launch();
}

void FakeJob::freeze() {
  frozen_ = true;
  gpu_.preempt(run_->client(), program::Preemption::kAfterKernel);
}

void FakeJob::tell(Notices& notices, const Launched& launched, SimTime start, SimTime end,
                   Duration late) {
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

void FakeJob::on_op_started(workload::ProgramRun& /*run*/, std::uint32_t op, SimTime now) {
  if (!frozen_) tell(part_.starts, launched_[program_.ops[op].stream].front(), now, now, {});
}

void FakeJob::on_op_finished(const workload::OpRecord& record) {
  if (frozen_) return;
  const std::uint32_t stream = program_.ops[record.op].stream;
  const Launched done = launched_[stream].front();
  launched_[stream].pop_front();
  tell(part_.ends, done, record.start, record.end, notice_);
  capture::FakeStream& shared = part_.streams()[stream];
  if (done.takes_place) shared.queued.fetch_sub(1);
  shared.ended.fetch_add(1);
  part_.ended()[done.op].fetch_add(1);
  wake_hosts();
}

void FakeJob::wake_hosts() {
  for (capture::FakeWaiter& waiter : part_.waiters) {
    if (waiter.active.load() == 0) continue;
    const std::uint64_t ended = waiter.kind == capture::FakeWait::kOp
                                    ? part_.ended()[waiter.target].load()
                                    : part_.streams()[waiter.target].ended.load();
    if (ended >= waiter.count) clock_.ring(waiter.bell);
  }
}

void FakeJob::settle() {
  if (part_.no_more.load() == 0 || part_.quiet.load() != 0 || !part_.launches.empty()) return;
  const bool open = std::ranges::any_of(launched_, [](const auto& ops) { return !ops.empty(); });
  if (!arriving_.empty() || !run_->stands_still() || (frozen_ && open)) return;
  part_.quiet.store(1);
  for (capture::FakeWaiter& waiter : part_.waiters) {
    if (waiter.active.load() != 0) clock_.ring(waiter.bell);
  }
}

}  // namespace bubblesim::measure
