#include "tests/unit/capture/replay/stage.hpp"

#include <algorithm>

namespace bubblesim::capture::testing {

QueueDevice::QueueDevice(HostClock& clock) : clock_(clock), crew_(clock) {
  work_.id = clock.bell_id();
  done_.id = clock.bell_id();
}

QueueDevice::~QueueDevice() { shut_down(); }

Result<void> QueueDevice::prepare(const DeviceJob& job) {
  if (prepare_fault) return tl::make_unexpected(*prepare_fault);
  job_ = job;
  streams_.resize(job.plan->program.stream_count);
  op_ends_.resize(job.plan->program.ops.size());
  crew_.start(Turn::kDevice, [this] { run(); });
  return {};
}

void QueueDevice::launch(const OpInstance& first, std::uint32_t count, double factor, Duration) {
  if (no_more_) return;
  for (std::uint32_t i = 0; i < count; ++i) {
    const program::Op& op = job_.plan->program.ops[first.op + i];
    Stream& stream = streams_[op.stream];
    stream.pending.push_back(
        {{first.op + i, first.pass, first.launch}, scale(op.duration, factor)});
    ++stream.launched;
    ++launched_;
  }
  clock_.ring(work_);
}

template <class Done>
void QueueDevice::wait_until(const Done& done) {
  while (true) {
    const std::uint32_t seen = done_.rings.load();
    if (done()) return;
    clock_.wait(done_, seen, HostTime::max());
  }
}

void QueueDevice::wait_op(std::uint32_t op, std::uint64_t pass) {
  wait_until([=, this] { return op_ends_[op] > pass; });
}

void QueueDevice::wait_stream(std::uint32_t stream) {
  const std::uint64_t launched = streams_[stream].launched;
  wait_until([=, this] { return streams_[stream].ended >= launched; });
}

void QueueDevice::wait_all() {
  const std::uint64_t launched = launched_;
  wait_until([=, this] { return ended_ >= launched; });
}

void QueueDevice::end_launches() {
  no_more_ = true;
  clock_.ring(work_);
}

Result<void> QueueDevice::close() {
  end_launches();
  wait_all();
  shut_down();
  if (close_fault) return tl::make_unexpected(*close_fault);
  return {};
}

void QueueDevice::shut_down() {
  closing_ = true;
  clock_.ring(work_);
  crew_.wait();
}

bool QueueDevice::may_start(const OpInstance& instance) const {
  const program::Op& op = job_.plan->program.ops[instance.op];
  for (std::uint32_t i = 0; i < op.edge_count; ++i) {
    if (op_ends_[job_.plan->program.edges[op.first_edge + i].before] <= instance.pass) return false;
  }
  return true;
}

bool QueueDevice::finish_due(HostTime now) {
  bool any = false;
  for (Stream& stream : streams_) {
    if (!stream.running || stream.end > now) continue;
    const OpInstance op = stream.pending.front().op;
    stream.pending.pop_front();
    stream.running = false;
    ++stream.ended;
    ++op_ends_[op.op];
    ++ended_;
    if (job_.listener != nullptr) job_.listener->on_finished(op, stream.start, stream.end);
    any = true;
  }
  if (any) clock_.ring(done_);
  return any;
}

bool QueueDevice::start_ready(HostTime now) {
  bool any = false;
  for (Stream& stream : streams_) {
    if (stream.running || stream.pending.empty()) continue;
    const Pending& next = stream.pending.front();
    if (!may_start(next.op)) continue;
    stream.running = true;
    stream.start = now;
    stream.end = now + next.length;
    if (job_.listener != nullptr) job_.listener->on_started(next.op, now);
    any = true;
  }
  return any;
}

// Nothing runs, nothing can start, nothing will be launched.
void QueueDevice::drop_blocked() {
  for (Stream& stream : streams_) {
    stream.ended += stream.pending.size();
    ended_ += stream.pending.size();
    for (const Pending& pending : stream.pending) op_ends_[pending.op.op] = pending.op.pass + 1;
    stream.pending.clear();
  }
  clock_.ring(done_);
}

void QueueDevice::run() {
  while (true) {
    const std::uint32_t seen = work_.rings.load();
    const HostTime now = clock_.now();
    if (finish_due(now) || start_ready(now)) continue;
    HostTime next = HostTime::max();
    for (const Stream& stream : streams_) {
      if (stream.running) next = std::min(next, stream.end);
    }
    if (next == HostTime::max() && no_more_ && in_flight() > 0) {
      drop_blocked();
      continue;
    }
    if (next == HostTime::max() && closing_) return;
    clock_.wait(work_, seen, next);
  }
}

void StubGate::note(const std::string& what) {
  heard.push_back(std::to_string(in_us(clock_.now() - origin_)) + " " + what);
}

Passage StubGate::launch(policy::LaunchInfo launch) {
  launch.launch = ++launches_;
  launched.push_back(launch);
  const auto hold = held_until.find(launches_);
  if (hold == held_until.end()) return {};
  const HostTime asked = clock_.now();
  clock_.sleep_until(origin_ + hold->second);
  return {clock_.now() - asked, true, false};
}

void StubGate::completed(program::WorkKind, std::uint64_t launch, std::uint32_t) {
  note("completed " + std::to_string(launch));
}

void StubGate::iteration_ended(Duration length) {
  note("iteration of " + std::to_string(in_us(length)));
}

void StubGate::bubble_began(const policy::BubbleInfo& bubble) {
  note("bubble of " + std::to_string(in_us(bubble.expected)));
}

Stage::Stage() {
  auto made = make_turn_clock();
  if (!made) return;
  clock_ = std::move(*made);
  part_ = clock_->join(Turn::kControl);
  device_ = std::make_unique<QueueDevice>(*clock_);
}

StubGate& Stage::gate() {
  if (!gate_) gate_ = std::make_unique<StubGate>(*clock_);
  return *gate_;
}

ReplayEnd Stage::run(const JobPlan& plan, std::optional<Duration> stop) {
  JobRunner runner(plan, {clock_.get(), device_.get(), gate_.get(), {}, [this] {
                            ++iterations_told;
                          }});
  if (auto prepared = runner.prepare({}); !prepared) return {{}, prepared.error()};
  const HostTime origin = clock_->now();
  Crew crew(*clock_);
  if (stop) {
    crew.start(Turn::kControl, [&, stop] {
      clock_->sleep_until(origin + *stop);
      runner.request_stop();
    });
  }
  ReplayEnd end = runner.run(origin);
  crew.wait();
  return end;
}

std::vector<std::string> timeline(const JobRecord& record) {
  std::vector<std::string> lines;
  for (const OperationRecord& op : record.operations) {
    lines.push_back(std::to_string(op.op) + ": called " + std::to_string(in_us(op.called)) +
                    ", runs " + std::to_string(in_us(op.start)) + " to " +
                    std::to_string(in_us(op.end)) + ", returned " +
                    std::to_string(in_us(op.returned)));
  }
  return lines;
}

std::int64_t in_us(Duration instant) {
  return std::chrono::duration_cast<std::chrono::microseconds>(instant).count();
}

std::vector<std::int64_t> in_us(const std::vector<Duration>& instants) {
  std::vector<std::int64_t> out;
  for (const Duration instant : instants) out.push_back(in_us(instant));
  return out;
}

}  // namespace bubblesim::capture::testing
