// The device's globaltimer on the rig's clock: the offset between them, with its bounds.
//
// A ping kernel reads globaltimer at some moment between two readings of the host's clock: each
// ping bounds the offset from both sides, and the bounds of many are as tight as the luckiest two.
#pragma once

#include <cstdint>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/cuda/device_context.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture::cuda {

/// host = device + offset; the offset lies in [lowest, highest].
struct ClockOffset {
  std::int64_t lowest_ns = 0;
  std::int64_t highest_ns = 0;
  std::int64_t tick_ns = 0;  ///< smallest step of globaltimer that was seen
  [[nodiscard]] std::int64_t middle_ns() const { return lowest_ns + (highest_ns - lowest_ns) / 2; }
  [[nodiscard]] HostTime host(std::uint64_t device_ns) const {
    return HostTime{Duration{static_cast<std::int64_t>(device_ns) + middle_ns()}};
  }
};

/// Pings so often, one after the other. The context is current and the device idle. Fault: the
/// driver's; no answer within `patience` of the clock's time.
[[nodiscard]] Result<ClockOffset> measure_offset(DeviceContext& context, HostClock& clock,
                                                 StreamHandle stream, Duration patience,
                                                 std::uint32_t pings = 64);

}  // namespace bubblesim::capture::cuda
