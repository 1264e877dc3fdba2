// A stage on which tests run jobs: a TurnClock, a fake GPU, a gate that obeys the test. Times are
// in microseconds since the job's time 0.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/replay/fake/fake_device.hpp"
#include "capture/replay/job_runner.hpp"
#include "sim/measure/fake_gpu.hpp"
#include "tests/fault.hpp"
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

/// Has 8 SMs of 32 blocks, and no delay of its own.
inline hardware::GpuSpec small_gpu() {
  hardware::GpuSpec spec;
  spec.name = "small";
  spec.sm_count = 8;
  spec.sm.shared_memory_bytes = 64 << 10;
  spec.memory = Bytes{1 << 30};
  return spec;
}

/// A fake GPU that a thread of its own drives.
class RunningGpu {
 public:
  RunningGpu(HostClock& clock, const RigSetup& setup, const hardware::GpuSpec& spec = small_gpu(),
             const measure::FakeGpuFaults& faults = {})
      : gpu_(measure::make_fake_gpu(spec, faults)),
        name_(must(gpu_->begin(clock, setup)).substr(sizeof("fake:") - 1)), crew_(clock) {
    crew_.start(Turn::kDevice, [this] { gpu_->run(); });
  }
  ~RunningGpu() { gpu_->stop(); }
  RunningGpu(const RunningGpu&) = delete;
  RunningGpu& operator=(const RunningGpu&) = delete;

  /// What open_fake_device() takes.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::unique_ptr<FakeGpu> gpu_;
  std::string name_;
  Crew crew_;
};

/// These jobs, with the default share of the GPU each.
inline RigSetup sharing_jobs(std::vector<JobPlan> jobs) {
  RigSetup setup;
  setup.jobs = std::move(jobs);
  setup.shares.resize(kMostGateClients);
  return setup;
}

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
  /// The plan's device, on a fake GPU of its own.
  Device& open(const JobPlan& plan) {
    gpu_ = std::make_unique<RunningGpu>(*clock_, sharing_jobs({plan}), small_gpu(), faults);
    device_ = must(open_fake_device(gpu_->name(), *clock_, plan.client));
    return *device_;
  }

  /// Runs the job; stops it at `stop`, if given; before its start, if that is negative.
  ReplayEnd run(const JobPlan& plan, std::optional<Duration> stop = std::nullopt) {
    JobRunner runner(plan,
                     {clock_.get(), &open(plan), gate_.get(), {}, [this] { ++iterations_told; }});
    if (auto prepared = runner.prepare({}); !prepared) return {{}, prepared.error()};
    const HostTime origin = clock_->now();
    Crew crew(*clock_);
    if (stop && *stop < Duration{}) {
      runner.request_stop();
    } else if (stop) {
      crew.start(Turn::kControl, [&, stop] {
        clock_->sleep_until(origin + *stop);
        runner.request_stop();
      });
    }
    ReplayEnd end = runner.run(origin);
    crew.wait();
    return end;
  }

  /// Gives the job a gate from now on.
  StubGate& gate() {
    if (!gate_) gate_ = std::make_unique<StubGate>(*clock_);
    return *gate_;
  }

  measure::FakeGpuFaults faults;
  std::uint32_t iterations_told = 0;

 private:
  std::unique_ptr<HostClock> clock_ = must(make_turn_clock());
  std::unique_ptr<ClockPart> part_ = clock_->join(Turn::kControl);
  std::unique_ptr<RunningGpu> gpu_;
  std::unique_ptr<Device> device_;
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
