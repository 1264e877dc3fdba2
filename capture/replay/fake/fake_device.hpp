// A job's side of a fake device: hands launches to the FakeGpu of another process through shared
// memory, and waits in the clock's turns.
//
// Host times are the plan's (HostCosts::kPlanned). A listener hears of a start at once and of an
// end when a real host would know of it (GpuSpec::completion_notice later), with the true times of
// both.
#pragma once

#include <memory>
#include <string>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/device.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

inline constexpr CounterSpec kFakeNoticesLost{"fake_device_notices_lost", Severity::kLoss,
    "starts and ends of operations that a fake device had no room to tell of"};

/// How long close() of a stopped device waits, by the clock, for any operation to end.
inline constexpr Duration kFakeNoAnswer = std::chrono::seconds(10);

/// The fake GPU of this name (FakeGpu::begin, without "fake:"). Fault: no such GPU, the client has
/// no job on it, or another process has opened the job.
[[nodiscard]] Result<std::unique_ptr<Device>> open_fake_device(const std::string& name,
                                                               HostClock& clock, ClientId client);

}  // namespace bubblesim::capture
