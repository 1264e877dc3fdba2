// A job on a fake GPU: hands over what its process launched, at the time of the launch, to a run of
// the job's program, and says in shared memory what has started and ended.
//
// Streams are the run's, as in any simulation, so that a plan made from a program takes the same
// time, to the nanosecond.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/fake/fake_segment.hpp"
#include "capture/replay/job_plan.hpp"
#include "sim/engine/engine.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/program/program.hpp"
#include "sim/workload/machine.hpp"

namespace bubblesim::measure {

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

class FakeJob final : public workload::RunObserver, public engine::EventHandler {
 public:
  /// All references but `plan` outlive the job; `notice` passes from an end to the host's knowledge
  /// of it.
  FakeJob(workload::Machine& machine, workload::MachineGpu& gpu, const gpu::ClientSetup& setup,
          const capture::JobPlan& plan, capture::FakeJobPart& part, capture::HostClock& clock,
          const FakeTime& time, Duration notice);

  /// Puts what the process has launched on its streams, each launch at its time.
  void take_launches();
  /// Once no launch comes any more: says when nothing that was launched will run any more.
  void settle();
  /// The device stops answering this job: no kernel of it starts, and it hears of nothing any more.
  void freeze();

  /// The next launch has come.
  void on_event(SimTime now) override;
  void on_op_started(workload::ProgramRun& run, std::uint32_t op, SimTime now) override;
  void on_op_finished(const workload::OpRecord& record) override;

 private:
  /// An operation of a stream whose end the process has not been told.
  struct Launched {
    std::uint32_t op = 0;
    std::uint64_t pass = 0;
    std::uint64_t launch = 0;
    bool takes_place = false;  ///< in the stream's queue
  };
  using Notices = decltype(capture::FakeJobPart::ends);

  void await_launch();
  void tell(Notices& notices, const Launched& launched, SimTime start, SimTime end, Duration late);
  void wake_hosts();

  engine::Engine& engine_;
  gpu::Gpu& gpu_;
  program::Program program_;
  capture::FakeJobPart& part_;
  capture::HostClock& clock_;
  const FakeTime& time_;
  Duration notice_;
  std::vector<std::deque<Launched>> launched_;  ///< by stream, in its order
  std::deque<capture::FakeLaunch> arriving_;    ///< by time
  engine::EntityId entity_;
  workload::ProgramRun* run_ = nullptr;
  bool frozen_ = false;
};

}  // namespace bubblesim::measure
