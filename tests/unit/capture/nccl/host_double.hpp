// A session's end of capture/record/host for tests: a clock to set, the events that came.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "capture/record/host/host_event.hpp"

namespace bubblesim::capture {

/// One for the whole test program, since the functions that it answers are global.
struct HostDouble {
  std::atomic<bool> recording{true};
  std::atomic<std::int64_t> now_ns{1'000};
  std::atomic<std::int64_t> step_ns{1};  ///< the clock moves on by this at every look

  [[nodiscard]] std::vector<HostEvent> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }
  /// The events of one sort, in order; others are forgotten. The test ends if they are not so many.
  template <class Event>
  [[nodiscard]] std::vector<Event> take_all(std::optional<std::size_t> count = std::nullopt) {
    std::vector<Event> out;
    for (HostEvent& event : take()) {
      if (auto* wanted = std::get_if<Event>(&event)) out.push_back(std::move(*wanted));
    }
    if (count && out.size() != *count) {
      throw std::runtime_error(std::to_string(out.size()) + " events; expected " +
                               std::to_string(*count));
    }
    return out;
  }
  void put(HostEvent&& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  void reset() {
    recording = true;
    now_ns = 1'000;
    step_ns = 1;
    (void)take();
  }

 private:
  std::mutex mutex_;
  std::vector<HostEvent> events_;
};

[[nodiscard]] HostDouble& host_double();

}  // namespace bubblesim::capture
