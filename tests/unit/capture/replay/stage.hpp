// A stage on which tests run jobs: a TurnClock, a device of queues, a gate that obeys the test.
// Times are in microseconds since the job's time 0.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/replay/device.hpp"
#include "capture/replay/job_runner.hpp"
#include "tests/unit/capture/replay/plans.hpp"

namespace bubblesim::capture::testing {

/// In whole microseconds.
inline std::int64_t in_us(Duration instant) {
  return std::chrono::duration_cast<std::chrono::microseconds>(instant).count();
}

inline std::vector<std::int64_t> in_us(const std::vector<Duration>& instants) {
  std::vector<std::int64_t> out;
  for (const Duration instant : instants) out.push_back(in_us(instant));
  return out;
}

/// Each stream is a queue; an operation lasts as long as its plan says, whatever runs beside it.
/// Calls take the plan's time.
class QueueDevice final : public Device {
 public:
  explicit QueueDevice(HostClock& clock) : clock_(clock), crew_(clock) {
    work_.id = clock.bell_id();
    done_.id = clock.bell_id();
  }
  ~QueueDevice() override { shut_down(); }

  HostCosts host_costs() const override { return HostCosts::kPlanned; }
  Result<void> prepare(const DeviceJob& job) override {
    if (prepare_fault) return tl::make_unexpected(*prepare_fault);
    job_ = job;
    streams_.resize(job.plan->program.stream_count);
    op_ends_.resize(job.plan->program.ops.size());
    crew_.start(Turn::kDevice, [this] { run(); });
    return {};
  }
  void launch(const OpInstance& first, std::uint32_t count, double factor, Duration) override {
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
  void wait_op(std::uint32_t op, std::uint64_t pass) override {
    wait_until([=, this] { return op_ends_[op] > pass; });
  }
  void wait_stream(std::uint32_t stream) override {
    const std::uint64_t launched = streams_[stream].launched;
    wait_until([=, this] { return streams_[stream].ended >= launched; });
  }
  void wait_all() override {
    const std::uint64_t launched = launched_;
    wait_until([=, this] { return ended_ >= launched; });
  }
  std::uint64_t resident_blocks(std::uint32_t op) const override { return 100 + op; }
  std::uint64_t in_flight() const override { return launched_ - ended_; }
  void end_launches() override {
    no_more_ = true;
    clock_.ring(work_);
  }
  Result<void> close() override {
    end_launches();
    wait_all();
    shut_down();
    if (close_fault) return tl::make_unexpected(*close_fault);
    return {};
  }
  CounterSet counters() const override { return {}; }

  std::optional<Error> close_fault;    ///< what close() says
  std::optional<Error> prepare_fault;  ///< what prepare() says

 private:
  struct Pending {
    OpInstance op;
    Duration length{};
  };
  struct Stream {
    std::deque<Pending> pending;  ///< front: runs, if `running`
    bool running = false;
    HostTime start{}, end{};
    std::uint64_t launched = 0, ended = 0;
  };

  void run() {
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
  bool finish_due(HostTime now) {
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
  bool start_ready(HostTime now) {
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
  void drop_blocked() {
    for (Stream& stream : streams_) {
      stream.ended += stream.pending.size();
      ended_ += stream.pending.size();
      for (const Pending& pending : stream.pending) op_ends_[pending.op.op] = pending.op.pass + 1;
      stream.pending.clear();
    }
    clock_.ring(done_);
  }
  [[nodiscard]] bool may_start(const OpInstance& instance) const {
    const program::Op& op = job_.plan->program.ops[instance.op];
    for (std::uint32_t i = 0; i < op.edge_count; ++i) {
      if (op_ends_[job_.plan->program.edges[op.first_edge + i].before] <= instance.pass)
        return false;
    }
    return true;
  }
  template <class Done>
  void wait_until(const Done& done) {
    while (true) {
      const std::uint32_t seen = done_.rings.load();
      if (done()) return;
      clock_.wait(done_, seen, HostTime::max());
    }
  }
  void shut_down() {
    closing_ = true;
    clock_.ring(work_);
    crew_.wait();
  }

  HostClock& clock_;
  DeviceJob job_;
  std::vector<Stream> streams_;
  std::vector<std::uint64_t> op_ends_;
  std::uint64_t launched_ = 0, ended_ = 0;
  bool no_more_ = false, closing_ = false;
  Bell work_, done_;
  Crew crew_;
};

/// Logs what the job tells it, with the time.
class StubGate final : public GateClient {
 public:
  explicit StubGate(HostClock& clock) : clock_(clock), origin_(clock.now()) {}

  Passage launch(policy::LaunchInfo launch) override {
    launch.launch = ++launches_;
    launched.push_back(launch);
    const auto hold = held_until.find(launches_);
    if (hold == held_until.end()) return {};
    const HostTime asked = clock_.now();
    clock_.sleep_until(origin_ + hold->second);
    return {clock_.now() - asked, true, false};
  }
  std::uint64_t last_launch() const override { return launches_; }
  void completed(program::WorkKind, std::uint64_t launch, std::uint32_t) override {
    note("completed " + std::to_string(launch));
  }
  bool has_room() const override { return true; }
  void iteration_ended(Duration length) override {
    note("iteration of " + std::to_string(in_us(length)));
  }
  void bubble_began(const policy::BubbleInfo& bubble) override {
    note("bubble of " + std::to_string(in_us(bubble.expected)));
  }
  void bubble_ended() override { note("bubble ends"); }
  std::uint32_t window() const override { return window_size; }
  void look_for_host() override {}
  GateClientCounts counts() const override { return {launches_, 0, 0}; }

  std::uint32_t window_size = 0;
  std::map<std::uint64_t, Duration> held_until;  ///< by launch; since origin_
  std::vector<std::string> heard;                ///< "12 completed 3"
  std::vector<policy::LaunchInfo> launched;

 private:
  void note(const std::string& what) {
    heard.push_back(std::to_string(in_us(clock_.now() - origin_)) + " " + what);
  }

  HostClock& clock_;
  HostTime origin_;
  std::uint64_t launches_ = 0;
};

class Stage {
 public:
  Stage() {
    auto made = make_turn_clock();
    if (!made) return;
    clock_ = std::move(*made);
    part_ = clock_->join(Turn::kControl);
    device_ = std::make_unique<QueueDevice>(*clock_);
  }

  /// Runs the job; stops it at `stop`, if given.
  ReplayEnd run(const JobPlan& plan, std::optional<Duration> stop = std::nullopt) {
    JobRunner runner(plan,
                     {clock_.get(), device_.get(), gate_.get(), {}, [this] { ++iterations_told; }});
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

  HostClock& clock() { return *clock_; }
  QueueDevice& device() { return *device_; }
  /// Gives the job a gate from now on.
  StubGate& gate() {
    if (!gate_) gate_ = std::make_unique<StubGate>(*clock_);
    return *gate_;
  }

  std::uint32_t iterations_told = 0;

 private:
  std::unique_ptr<HostClock> clock_;
  std::unique_ptr<ClockPart> part_;
  std::unique_ptr<QueueDevice> device_;
  std::unique_ptr<StubGate> gate_;
};

/// "0: called 2, runs 2 to 12, returned 3" for each operation, in order of their ends.
inline std::vector<std::string> timeline(const JobRecord& record) {
  std::vector<std::string> lines;
  for (const OperationRecord& op : record.operations) {
    lines.push_back(std::to_string(op.op) + ": called " + std::to_string(in_us(op.called)) +
                    ", runs " + std::to_string(in_us(op.start)) + " to " +
                    std::to_string(in_us(op.end)) + ", returned " +
                    std::to_string(in_us(op.returned)));
  }
  return lines;
}

}  // namespace bubblesim::capture::testing
