// What threads of the job say, on its way to the writer: bounded in number and in bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/record/host/bounded_queue.hpp"
#include "capture/record/host/host_event.hpp"

namespace bubblesim::capture {

/// The bytes that are kept of a name or a group, and the number of peers: they bound a full queue.
inline constexpr std::size_t kMaxEventText = 512;
inline constexpr std::size_t kMaxEventPeers = 4096;

/// Many producers, one consumer. No call blocks or throws.
class HostEventQueue {
 public:
  explicit HostEventQueue(std::size_t length) : events_(length) {}

  /// Full: the event is dropped and counted.
  void push(HostEvent&& event) noexcept;
  [[nodiscard]] bool pop(HostEvent& event) noexcept { return events_.pop(event); }
  [[nodiscard]] std::size_t size() const { return events_.size(); }

  /// Events dropped since the last call.
  [[nodiscard]] std::uint64_t take_dropped() noexcept { return dropped_.exchange(0); }
  /// Events that were cut to kMaxEventText or kMaxEventPeers since the last call.
  [[nodiscard]] std::uint64_t take_cut() noexcept { return cut_.exchange(0); }

 private:
  BoundedQueue<HostEvent> events_;
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> cut_{0};
};

}  // namespace bubblesim::capture
