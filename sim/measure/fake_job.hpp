// A job's streams on a fake GPU: takes what its process launched, starts operations when stream
// order, launch lags, gaps and edges allow, and says in shared memory what has ended.
//
// The rules are sim/program's, as those of workload::ProgramRun, so that a plan made from a program
// takes the same time, to the nanosecond.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/fake/fake_segment.hpp"
#include "capture/replay/job_plan.hpp"
#include "sim/engine/engine.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/program/program.hpp"

namespace bubblesim::measure {

/// Where the engine's time lies in the clock's: later by as long as the device has stood still.
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

class FakeJob final : public gpu::WorkListener {
 public:
  /// All references but `plan` outlive the job; `notice` passes from an end to the host's knowledge
  /// of it.
  FakeJob(engine::Engine& engine, gpu::Gpu& gpu, const gpu::ClientSetup& setup,
          const capture::JobPlan& plan, capture::FakeJobPart& part, capture::HostClock& clock,
          const FakeTime& time, Duration notice);
  ~FakeJob() override;

  /// Puts what the process has launched on its streams.
  void take_launches();
  /// Once no launch comes any more: says when nothing that was launched will run any more.
  void settle();
  /// The device stops answering this job: nothing of it starts or ends any more.
  void freeze() { frozen_ = true; }

  void on_work_started(std::uint64_t cookie, gpu::WorkId work, SimTime now) override;
  void on_work_finished(std::uint64_t cookie, SimTime now) override;

 private:
  class Stream;
  /// Of an operation: how often it has ended, and when last.
  struct OpResult {
    std::uint64_t passes = 0;
    SimTime end{};
  };

  void take(const capture::FakeLaunch& launch);
  void advance(Stream& stream, SimTime now);
  void announce(Stream& stream);
  void retract(Stream& stream);
  void submit(Stream& stream, SimTime now);
  void notify(const Stream& stream, SimTime end);
  void wake_hosts();
  [[nodiscard]] const program::KernelProfile* profile_for(const program::Op& op) const;

  engine::Engine& engine_;
  gpu::Gpu& gpu_;
  program::Program program_;
  capture::FakeJobPart& part_;
  capture::HostClock& clock_;
  const FakeTime& time_;
  Duration notice_;
  ClientId client_;
  std::vector<program::KernelProfile> profiles_;  ///< by form
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<OpResult> results_;             ///< by operation
  bool frozen_ = false;
};

}  // namespace bubblesim::measure
