// Executions that were launched and have not been seen to end, in the order of their streams.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "capture/replay/cuda/device_clock.hpp"
#include "capture/replay/cuda/record_ring.hpp"
#include "capture/replay/device.hpp"

namespace bubblesim::capture::cuda {

/// Not thread-safe, but for the counts, which any thread may read.
class Flights {
 public:
  Flights(const RecordRing& ring, std::uint32_t operations, std::uint32_t streams);

  /// The next execution of `op` was put on `stream`.
  void launched(const OpInstance& op, std::uint32_t stream);

  /// Looks at the records: what started and ended since then is told, a stream's in order.
  /// Returns whether anything had.
  bool look(const ClockTrack& clock, DeviceListener* listener);

  /// Device time of the latest end that was seen; 0: none.
  [[nodiscard]] std::uint64_t latest_end_ns() const { return latest_end_ns_; }

  [[nodiscard]] std::uint64_t launched_count(std::uint32_t op) const;
  [[nodiscard]] std::uint64_t ended_count(std::uint32_t op) const;
  [[nodiscard]] std::uint64_t in_flight() const { return in_flight_.load(); }
  [[nodiscard]] std::uint64_t in_flight(std::uint32_t stream) const;

 private:
  struct Flight {
    OpInstance op;
    std::uint64_t n = 0;  ///< execution of the operation, from 1 on
    bool told_start = false;
  };
  struct Counts {
    std::atomic<std::uint64_t> launched{0};
    std::atomic<std::uint64_t> ended{0};
  };
  struct Lane {
    std::deque<Flight> flights;
    std::atomic<std::uint64_t> count{0};
  };
  bool look_at(Lane& lane, const ClockTrack& clock, DeviceListener* listener);

  const RecordRing& ring_;
  std::vector<Counts> counts_;
  std::vector<Lane> lanes_;
  std::atomic<std::uint64_t> in_flight_{0};
  std::uint64_t latest_end_ns_ = 0;
};

}  // namespace bubblesim::capture::cuda
