// Waits of a job's host threads. All of them end when the job is told to stop.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "capture/clock/host_clock.hpp"

namespace bubblesim::capture {

/// Events for which a host thread may wait, besides time and the device.
enum class WakeEvent : std::uint8_t {
  kStop,  ///< the job is told to stop; nothing else
  kStep,  ///< a thread has ended a step that others wait for, or has launched an operation
  kDone,  ///< an operation has ended
  kPass,  ///< a pass begins, or a thread has ended one
};

/// Thread-safe; all but stopping() for threads that take part in the clock.
class HostSignals {
 public:
  /// `clock` outlives it.
  explicit HostSignals(HostClock& clock) : clock_(clock) {
    for (Signal& signal : signals_) signal.bell.id = clock.bell_id();
  }

  [[nodiscard]] HostClock& clock() const { return clock_; }
  [[nodiscard]] HostTime now() const { return clock_.now(); }

  [[nodiscard]] bool stopping() const { return stopping_.load(); }
  void stop() {
    stopping_.store(true);
    for (Signal& signal : signals_) clock_.ring(signal.bell);
  }

  /// False: the job was told to stop before.
  [[nodiscard]] bool sleep_until(HostTime until) {
    Signal& stop = signal(WakeEvent::kStop);
    while (true) {
      const std::uint32_t seen = stop.bell.rings.load();
      if (stopping()) return false;
      if (clock_.now() >= until) return true;
      clock_.wait(stop.bell, seen, until);
    }
  }

  /// Returns when `done()` is true; calls it after each notify(wake) and every `look`. False: told
  /// to stop.
  template <class Done>
  [[nodiscard]] bool await(WakeEvent wake, const Done& done, Duration look = Duration::max());
  /// Called after a change that a thread may await; cheap if none does.
  void notify(WakeEvent wake) {
    Signal& awaited = signal(wake);
    if (awaited.waiting.load() > 0) clock_.ring(awaited.bell);
  }

  /// Marks calls of the device, the only ones that a stop does not end.
  class InsideDevice {
   public:
    explicit InsideDevice(HostSignals& signals) : signals_(signals) { ++signals_.inside_device_; }
    ~InsideDevice() { --signals_.inside_device_; }
    InsideDevice(const InsideDevice&) = delete;
    InsideDevice& operator=(const InsideDevice&) = delete;

   private:
    HostSignals& signals_;
  };
  [[nodiscard]] std::uint32_t inside_device() const { return inside_device_.load(); }

 private:
  struct Signal {
    Bell bell;
    std::atomic<std::uint32_t> waiting{0};
  };
  [[nodiscard]] Signal& signal(WakeEvent wake) { return signals_[static_cast<std::size_t>(wake)]; }
  void wait(Signal& signal, std::uint32_t seen, Duration look) {
    clock_.wait(signal.bell, seen, look == Duration::max() ? HostTime::max() : clock_.now() + look);
  }

  HostClock& clock_;
  std::array<Signal, 4> signals_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> inside_device_{0};
};

// Sequentially consistent on both sides: either the waiter sees the change, or the thread that made
// it sees the waiter.
template <class Done>
bool HostSignals::await(WakeEvent wake, const Done& done, Duration look) {
  Signal& awaited = signal(wake);
  awaited.waiting.fetch_add(1);
  bool reached = false;
  while (true) {
    const std::uint32_t seen = awaited.bell.rings.load();
    if (stopping()) break;
    reached = done();
    if (reached) break;
    wait(awaited, seen, look);
  }
  awaited.waiting.fetch_sub(1);
  return reached;
}

}  // namespace bubblesim::capture
