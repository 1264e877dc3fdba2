// Executions that were launched and have not been seen to end, in the order of their streams.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "capture/replay/cuda/copy_events.hpp"
#include "capture/replay/cuda/device_clock.hpp"
#include "capture/replay/cuda/record_ring.hpp"
#include "capture/replay/device.hpp"

namespace bubblesim::capture::cuda {

/// The class is not thread-safe, but for the counts, which any thread may read.
class Flights {
 public:
  /// All outlive it.
  Flights(const RecordRing& ring, const CopyEvents& copies, const program::Program& program);

  /// The next execution of `op` was put on `stream`.
  void launched(const OpInstance& op, std::uint32_t stream, HostTime now);

  /// Looks at the records: what started and ended since then is told, a stream's in order.
  /// Returns whether anything had. What an event tells ends when it is seen, at `now`, and starts
  /// at its launch or where its stream's last operation ended.
  bool look(const ClockTrack& clock, HostTime now, DeviceListener* listener);

  /// Device time of the latest end that was seen; 0: none.
  [[nodiscard]] std::uint64_t latest_end_ns() const { return latest_end_ns_; }

  [[nodiscard]] std::uint64_t launched_count(std::uint32_t op) const;
  [[nodiscard]] std::uint64_t ended_count(std::uint32_t op) const;
  [[nodiscard]] std::uint64_t in_flight() const { return in_flight_.load(); }
  [[nodiscard]] std::uint64_t in_flight(std::uint32_t stream) const;

  /// What is waited for where nothing moves: the first of each stream, "op 7, execution 3, begun".
  [[nodiscard]] std::string waited_for() const;

 private:
  struct Flight {
    OpInstance op;
    std::uint64_t n = 0;  ///< execution of the operation, from 1 on
    HostTime launched{};
    bool told_start = false;
  };
  struct Times {
    HostTime start{};
    HostTime end{};
  };
  struct Counts {
    std::atomic<std::uint64_t> launched{0};
    std::atomic<std::uint64_t> ended{0};
  };
  struct Lane {
    std::deque<Flight> flights;
    HostTime last_end{};
    std::atomic<std::uint64_t> count{0};
  };
  bool look_at(Lane& lane, const ClockTrack& clock, HostTime now, DeviceListener* listener);
  void end(Lane& lane, const Times& times, DeviceListener* listener);

  const RecordRing& ring_;
  const CopyEvents& copies_;
  const program::Program& program_;
  std::vector<Counts> counts_;
  std::vector<Lane> lanes_;
  std::atomic<std::uint64_t> in_flight_{0};
  std::uint64_t latest_end_ns_ = 0;
};

}  // namespace bubblesim::capture::cuda
