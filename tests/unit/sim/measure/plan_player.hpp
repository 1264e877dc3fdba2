// Plays plans on a fake GPU: host threads on a TurnClock, without a gate. Host times are the same
// as in workload::ProgramRun.
#pragma once

#include <string>
#include <vector>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/replay/fake/fake_device.hpp"
#include "sim/measure/fake_gpu.hpp"

namespace bubblesim::measure {

/// The outcome of one job; instants are since the common start.
struct Played {
  std::vector<Duration> iterations;  ///< ends
  std::vector<Duration> passes;      ///< ends: all threads done, device idle
  std::string fault;                 ///< of the device
  std::uint64_t in_flight = 0;       ///< at the end
  CounterSet counters;
};

struct PlayedJob {
  capture::JobPlan plan;
  std::uint64_t passes = 1;
  /// False: threads go on with the next pass at once. True: a pass begins when the previous one
  /// has ended and the device is idle.
  bool pass_by_pass = false;
  Duration until = Duration::max();  ///< no step and no pass begins from then on
  capture::DeviceListener* listener = nullptr;
  bool dies = false;  ///< the device is dropped after the last step, not closed
};

/// Plays all jobs at once on a GPU of this kind, under this sharing. It always terminates: close()
/// gives up a device that does not answer.
[[nodiscard]] std::vector<Played> play(const hardware::GpuSpec& spec,
                                       const std::vector<PlayedJob>& jobs,
                                       const policy::Sharing& sharing = {},
                                       const std::vector<policy::ClientSharing>& shares = {},
                                       const FakeGpuFaults& faults = {});

/// The ends of spans that lie end to end from 0 on.
[[nodiscard]] std::vector<Duration> ends_of(const std::vector<Duration>& spans);

}  // namespace bubblesim::measure
