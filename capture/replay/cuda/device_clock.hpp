// The device's globaltimer on the rig's clock: the offset between them, with its bounds, and how it
// changes.
//
// A ping kernel reads globaltimer at some moment between two readings of the host's clock: each
// ping bounds the offset from both sides, and the tightest bounds of all pings count. The pings do
// not say where between the two readings the kernel ran. The launch call, which takes most of the
// time before the kernel, signals the device shortly before it returns. From that return to the
// kernel, and from the kernel's record to the host, the bus is crossed once each. So the best value
// of the offset puts the kernel halfway between return and record.
//
// Two crystals drift apart by some parts in 100,000: 50 us in a run of 4 s. A run's own records
// bound the offset from above, as pings do: no more pings are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/cuda/device_context.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture::cuda {

/// host = device + offset; the offset lies in [lowest, highest].
struct ClockOffset {
  std::int64_t lowest_ns = 0;
  std::int64_t highest_ns = 0;
  std::int64_t best_ns = 0;  ///< within the bounds
  std::int64_t tick_ns = 0;  ///< smallest step of globaltimer that was seen
  std::int64_t at_ns = 0;    ///< device time of the last ping
};

/// The offset as it changes with time. Not thread-safe.
class ClockTrack {
 public:
  /// Takes a measurement as the offset from now on. During the first measurement no other process
  /// uses the GPU. Of a later one the upper bound counts; its change since the first measurement,
  /// if that was long enough ago, gives the rate of drift.
  void measured(const ClockOffset& offset);

  /// At `now` the host saw a record that the device wrote at `device_ns`. Of many records only the
  /// one seen soonest matters.
  void saw(HostTime now, std::uint64_t device_ns);

  [[nodiscard]] HostTime host(std::uint64_t device_ns) const {
    const auto device = static_cast<std::int64_t>(device_ns);
    return HostTime{Duration{device + offset_.best_ns + change_ns(device)}};
  }
  /// The difference between an offset measured now and the offset that was in use.
  [[nodiscard]] std::int64_t error_ns(const ClockOffset& now) const;
  /// How much the clocks have moved apart since the last measurement.
  [[nodiscard]] std::int64_t moved_ns(const ClockOffset& now) const {
    return now.highest_ns - offset_.highest_ns;
  }
  [[nodiscard]] const ClockOffset& offset() const { return offset_; }

 private:
  [[nodiscard]] std::int64_t change_ns(std::int64_t device_ns) const {
    return static_cast<std::int64_t>(rate_ * static_cast<double>(device_ns - offset_.at_ns));
  }

  ClockOffset first_;
  ClockOffset offset_;
  double rate_ = 0;  ///< ns of offset a ns
  /// The present block of records: its lowest rate. A block has at least kBlockRecords, and spans
  /// as much time as had passed before it.
  double lowest_rate_ = std::numeric_limits<double>::max();
  std::size_t records_ = 0;
  std::int64_t block_end_ns_ = 0;  ///< since offset_.at_ns
  bool measured_ = false;
  bool sure_ = false;              ///< the rate is final: records would make it worse
};

/// Sends `pings` pings, one after the other. The context is current and the device idle. Fault: the
/// driver's; no answer within `patience` of the clock's time.
[[nodiscard]] Result<ClockOffset> measure_offset(DeviceContext& context, HostClock& clock,
                                                 StreamHandle stream, Duration patience,
                                                 std::uint32_t pings = 64);

}  // namespace bubblesim::capture::cuda
