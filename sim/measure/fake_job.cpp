#include "sim/measure/fake_job.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <utility>

#include "sim/measure/kernel_forms.hpp"
#include "sim/program/rules.hpp"

namespace bubblesim::measure {
namespace {

using capture::FakeLaunch;
using capture::FakeNotice;
using capture::HostTime;
using capture::JobPlan;

std::int64_t nanoseconds_of(HostTime time) { return time.time_since_epoch().count(); }

/// JobPlan::device_lags: how long the operation lasts alone.
Duration own_duration(const JobPlan& plan, const program::Op& op, const hardware::GpuSpec& spec) {
  if (op.kind != program::WorkKind::kCopy || op.duration > Duration{}) return op.duration;
  const capture::CopyForm copy = capture::copy_of(plan, op);
  const auto bytes = static_cast<double>(copy.bytes.value);
  const double seconds = copy.path == capture::CopyPath::kDeviceToDevice
                             ? 2 * bytes / spec.dram_bandwidth.value
                             : bytes / spec.host_bandwidth.value;
  return Duration{std::llround(seconds * 1e9)};
}

/// What the device runs: the plan's program, for a probe with the device's own spans.
program::Program program_of(const JobPlan& plan, const hardware::GpuSpec& spec) {
  program::Program program = plan.program;
  if (!plan.device_lags) return program;
  for (program::Op& op : program.ops) {
    op.duration = own_duration(plan, op, spec);
    op.launch_lag = program::short_span(spec.launch_latency);
    op.gap = program::short_span(spec.stream_gap);
  }
  return program;
}

gpu::ClientSetup client_of(gpu::ClientSetup setup, const JobPlan& plan) {
  setup.own_kernels = plan.program.own_kernels;
  return setup;
}

}  // namespace

class FakeJob::Stream final : public engine::EventHandler {
 public:
  struct Pending {
    std::uint32_t op = 0;
    std::uint64_t pass = 0;
    std::uint64_t launch = 0;
    SimTime ready{};
    double factor = 1;
    bool takes_place = false;
  };

  enum class State : std::uint8_t { kIdle, kScheduled, kBlocked, kRunning };

  Stream(FakeJob& job, std::uint32_t number) : of(job), index(number) {}
  void on_event(SimTime now) override {
    if (std::exchange(arriving, false)) return of.advance(*this, now);
    of.submit(*this, now);
  }

  FakeJob& of;
  std::uint32_t index;
  engine::EntityId entity{};
  State state = State::kIdle;
  std::deque<Pending> pending;  ///< front: the operation that runs or comes next
  std::uint32_t blocked_on = program::kNoIndex;  ///< an operation
  std::optional<SimTime> last_end;
  bool arriving = false;   ///< its event is the launch's arrival, not the operation's start
  bool announced = false;  ///< its context is not out of work
  SimTime work_start{};
};

FakeJob::FakeJob(engine::Engine& engine, gpu::Gpu& gpu, const gpu::ClientSetup& setup,
                 const JobPlan& plan, capture::FakeJobPart& part, capture::HostClock& clock,
                 const FakeTime& time, Duration notice)
    : engine_(engine), gpu_(gpu), program_(program_of(plan, gpu.spec())), part_(part),
      clock_(clock), time_(time), notice_(notice),
      client_(gpu.add_client(client_of(setup, plan), *this)), results_(program_.ops.size()) {
  for (const capture::KernelForm& form : plan.forms) {
    profiles_.push_back(plan.device_lags ? class_profile_of(form, gpu.spec())
                                         : profile_of(form, gpu.spec()));
  }
  if (plan.device_lags) part.sync = to_ns(gpu.spec().sync_latency);
  const auto resident = part.resident();
  for (std::size_t i = 0; i < program_.ops.size(); ++i) {
    const program::KernelProfile* profile = profile_for(program_.ops[i]);
    if (profile == nullptr) continue;
    const program::Residency& residency = profile->residency;
    resident[i] = std::uint64_t{residency.blocks_per_sm} * gpu.spec().sm_count;
  }
  for (std::uint32_t i = 0; i < plan.program.stream_count; ++i) {
    streams_.push_back(std::make_unique<Stream>(*this, i));
    streams_.back()->entity = engine.add_entity(*streams_.back(), engine::Phase::kDispatch);
  }
}

FakeJob::~FakeJob() = default;

void FakeJob::take_launches() {
  if (frozen_ || part_.launches.empty()) return;
  while (!part_.launches.empty()) {
    const FakeLaunch launch = part_.launches.front();
    part_.launches.pop();
    take(launch);
  }
  clock_.ring(part_.room);
}

void FakeJob::take(const FakeLaunch& launch) {
  const SimTime at = time_.sim(HostTime{Duration{launch.at}});
  for (std::uint32_t i = 0; i < launch.count; ++i) {
    const std::uint32_t index = launch.op + i;
    const program::Op& op = program_.ops[index];
    Stream& stream = *streams_[op.stream];
    stream.pending.push_back({index, launch.pass, launch.launch, at + op.launch_lag.duration(),
                              launch.factor, launch.takes_place && i == 0});
    if (stream.state == Stream::State::kIdle) advance(stream, std::max(at, engine_.now()));
  }
}

// Starts the stream's next operation, or finds out what it waits for.
void FakeJob::advance(Stream& stream, SimTime now) {
  stream.state = Stream::State::kIdle;
  if (stream.pending.empty()) return;
  const Stream::Pending& pending = stream.pending.front();
  const program::Op& op = program_.ops[pending.op];
  const auto start = program::start_of(
      program_, op, pending.ready, stream.last_end, [&](const program::OpEdge& edge) {
        const OpResult& result = results_[edge.before];
        return result.passes > pending.pass ? result.end : SimTime::max();
      });
  if (start.open != nullptr) {
    stream.state = Stream::State::kBlocked;
    stream.blocked_on = start.open->before;
    return;
  }
  stream.state = Stream::State::kScheduled;
  // Launches are taken before the engine has come to their time, at which they are announced.
  stream.arriving = now > engine_.now();
  engine_.schedule(stream.entity, stream.arriving ? now : std::max(start.at, now));
  if (stream.arriving) return;
  const bool copy = op.kind == program::WorkKind::kCopy;
  if (!copy && start.at <= now + gpu::kInChannel) announce(stream);
}

const program::KernelProfile* FakeJob::profile_for(const program::Op& op) const {
  return is_kernel(op.kind) && op.profile != program::kNoIndex ? &profiles_[op.profile] : nullptr;
}

void FakeJob::announce(Stream& stream) {
  if (stream.announced) return;
  stream.announced = true;
  gpu_.announce(client_);
}

void FakeJob::retract(Stream& stream) {
  if (!stream.announced) return;
  stream.announced = false;
  gpu_.retract(client_);
}

void FakeJob::submit(Stream& stream, SimTime now) {
  if (frozen_) return retract(stream);
  const Stream::Pending& pending = stream.pending.front();
  const program::Op& op = program_.ops[pending.op];
  stream.state = Stream::State::kRunning;
  stream.work_start = now;
  const Duration solo = program::duration_of(op, pending.factor);
  const bool memset = op.kind == program::WorkKind::kMemset && solo <= gpu::kInChannel;
  if (memset) announce(stream);
  gpu_.submit({client_, op.kind, solo, profile_for(op), stream.index, 0});
  if (!memset) retract(stream);
}

void FakeJob::on_work_started(std::uint64_t cookie, gpu::WorkId work, SimTime now) {
  Stream& stream = *streams_[cookie];
  const Stream::Pending& pending = stream.pending.front();
  const program::Op& op = program_.ops[pending.op];
  stream.work_start = now;
  if (op.kind == program::WorkKind::kCollective) gpu_.finish_collective(work, now + op.duration);
  if (frozen_ || part_.watched.load() == 0) return;
  if (part_.starts.full()) {
    part_.notices_lost.fetch_add(1);
    return;
  }
  const std::int64_t start = nanoseconds_of(time_.host(now));
  part_.starts.push({pending.op, pending.pass, pending.launch, start, start, start});
  clock_.ring(part_.news);
}

void FakeJob::notify(const Stream& stream, SimTime end) {
  if (part_.watched.load() == 0) return;
  if (part_.ends.full()) {
    part_.notices_lost.fetch_add(1);
    return;
  }
  const Stream::Pending& pending = stream.pending.front();
  const HostTime host_end = time_.host(end);
  part_.ends.push({pending.op, pending.pass, pending.launch,
                   nanoseconds_of(time_.host(stream.work_start)), nanoseconds_of(host_end),
                   nanoseconds_of(host_end + notice_)});
  clock_.ring(part_.news);
}

void FakeJob::on_work_finished(std::uint64_t cookie, SimTime now) {
  Stream& stream = *streams_[cookie];
  retract(stream);
  if (frozen_) return;
  notify(stream, now);
  const Stream::Pending done = stream.pending.front();
  stream.pending.pop_front();
  stream.last_end = now;
  ++results_[done.op].passes;
  results_[done.op].end = now;
  capture::FakeStream& shared = part_.streams()[cookie];
  if (done.takes_place) shared.queued.fetch_sub(1);
  shared.ended.fetch_add(1);
  part_.ended()[done.op].fetch_add(1);
  advance(stream, now);
  for (const auto& other : streams_) {
    if (other->state == Stream::State::kBlocked && other->blocked_on == done.op) {
      advance(*other, now);
    }
  }
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
  for (const auto& stream : streams_) {
    if (stream->state == Stream::State::kScheduled || stream->state == Stream::State::kRunning) {
      return;
    }
  }
  part_.quiet.store(1);
  for (capture::FakeWaiter& waiter : part_.waiters) {
    if (waiter.active.load() != 0) clock_.ring(waiter.bell);
  }
}

}  // namespace bubblesim::measure
