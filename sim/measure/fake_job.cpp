#include "sim/measure/fake_job.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <span>
#include <utility>

#include "sim/measure/kernel_forms.hpp"

namespace bubblesim::measure {
namespace {

using capture::FakeLaunch;
using capture::FakeNotice;
using capture::HostTime;
using capture::JobPlan;
using capture::PlanOp;

constexpr std::uint32_t kNone = capture::kNone;

std::int64_t nanoseconds_of(HostTime time) { return time.time_since_epoch().count(); }

/// JobPlan::device_lags: how long the operation lasts alone.
Duration own_solo(const PlanOp& op, const hardware::GpuSpec& spec) {
  if (op.kind != program::WorkKind::kCopy || op.solo > Duration{}) return op.solo;
  const auto bytes = static_cast<double>(op.bytes.value);
  const double seconds = op.path == capture::CopyPath::kDeviceToDevice
                             ? 2 * bytes / spec.dram_bandwidth.value
                             : bytes / spec.host_bandwidth.value;
  return Duration{std::llround(seconds * 1e9)};
}

gpu::ClientSetup client_of(gpu::ClientSetup setup, const JobPlan& plan) {
  setup.own_kernels =
      plan.as_recorded ? program::OwnKernels::kAsRecorded : program::OwnKernels::kCompete;
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
  std::uint32_t blocked_on = kNone;  ///< an operation
  SimTime last_end{};
  bool has_run = false;
  bool arriving = false;   ///< its event is the launch's arrival, not the operation's start
  bool announced = false;  ///< its context is not out of work
  SimTime work_start{};
};

FakeJob::FakeJob(engine::Engine& engine, gpu::Gpu& gpu, const gpu::ClientSetup& setup,
                 const JobPlan& plan, capture::FakeJobPart& part, capture::HostClock& clock,
                 const FakeTime& time, Duration notice)
    : engine_(engine), gpu_(gpu), plan_(plan), part_(part), clock_(clock), time_(time),
      notice_(notice), client_(gpu.add_client(client_of(setup, plan), *this)),
      results_(plan.ops.size()) {
  for (const capture::KernelForm& form : plan.forms) {
    profiles_.push_back(plan.device_lags ? class_profile_of(form, gpu.spec())
                                         : profile_of(form, gpu.spec()));
  }
  if (plan.device_lags) part.sync = to_ns(gpu.spec().sync_latency);
  const auto resident = part.resident();
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].form == kNone) continue;
    const program::Residency& residency = profiles_[plan.ops[i].form].residency;
    resident[i] = std::uint64_t{residency.blocks_per_sm} * gpu.spec().sm_count;
  }
  for (std::uint32_t i = 0; i < plan.stream_count; ++i) {
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
    const PlanOp& op = plan_.ops[index];
    Stream& stream = *streams_[op.stream];
    const Duration lag = plan_.device_lags ? gpu_.spec().launch_latency : op.launch_lag;
    stream.pending.push_back({index, launch.pass, launch.launch, at + lag, launch.factor,
                              launch.takes_place && i == 0});
    if (stream.state == Stream::State::kIdle) advance(stream, std::max(at, engine_.now()));
  }
}

// Starts the stream's next operation, or finds out what it waits for.
void FakeJob::advance(Stream& stream, SimTime now) {
  stream.state = Stream::State::kIdle;
  if (stream.pending.empty()) return;
  const Stream::Pending& pending = stream.pending.front();
  const PlanOp& op = plan_.ops[pending.op];
  SimTime earliest = pending.ready;
  const Duration gap = plan_.device_lags ? gpu_.spec().stream_gap : op.gap;
  if (stream.has_run) earliest = std::max(earliest, stream.last_end + gap);
  for (const capture::PlanEdge& edge :
       std::span(plan_.edges).subspan(op.first_edge, op.edge_count)) {
    const OpResult& result = results_[edge.before];
    if (result.passes <= pending.pass) {
      stream.state = Stream::State::kBlocked;
      stream.blocked_on = edge.before;
      return;
    }
    earliest = std::max(earliest, result.end + edge.lag);
  }
  stream.state = Stream::State::kScheduled;
  // Launches are taken before the engine has come to their time, at which they are announced.
  stream.arriving = now > engine_.now();
  engine_.schedule(stream.entity, stream.arriving ? now : std::max(earliest, now));
  if (stream.arriving) return;
  const bool copy = op.kind == program::WorkKind::kCopy;
  if (!copy && earliest <= now + gpu::kInChannel) announce(stream);
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
  const PlanOp& op = plan_.ops[pending.op];
  stream.state = Stream::State::kRunning;
  stream.work_start = now;
  const bool own_span = op.kind == program::WorkKind::kCollective || pending.factor == 1.0;
  const Duration whole = plan_.device_lags ? own_solo(op, gpu_.spec()) : op.solo;
  const Duration solo = own_span ? whole : scale(whole, pending.factor);
  const program::KernelProfile* profile = op.form == kNone ? nullptr : &profiles_[op.form];
  const bool memset = op.kind == program::WorkKind::kMemset && solo <= gpu::kInChannel;
  if (memset) announce(stream);
  gpu_.submit({client_, op.kind, solo, profile, stream.index, 0});
  if (!memset) retract(stream);
}

void FakeJob::on_work_started(std::uint64_t cookie, gpu::WorkId work, SimTime now) {
  Stream& stream = *streams_[cookie];
  const Stream::Pending& pending = stream.pending.front();
  const PlanOp& op = plan_.ops[pending.op];
  stream.work_start = now;
  if (op.kind == program::WorkKind::kCollective) gpu_.finish_collective(work, now + op.solo);
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
  stream.has_run = true;
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
