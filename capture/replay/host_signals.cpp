#include "capture/replay/host_signals.hpp"

namespace bubblesim::capture {

HostSignals::HostSignals(HostClock& clock) : clock_(clock) {
  for (Signal& signal : signals_) signal.bell.id = clock.bell_id();
}

void HostSignals::stop() {
  stopping_.store(true);
  for (Signal& signal : signals_) clock_.ring(signal.bell);
}

bool HostSignals::sleep_until(HostTime until) {
  Signal& stop = signal(WakeEvent::kStop);
  while (true) {
    const std::uint32_t seen = stop.bell.rings.load();
    if (stopping()) return false;
    if (clock_.now() >= until) return true;
    clock_.wait(stop.bell, seen, until);
  }
}

void HostSignals::notify(WakeEvent wake) {
  Signal& awaited = signal(wake);
  if (awaited.waiting.load() > 0) clock_.ring(awaited.bell);
}

void HostSignals::wait(Signal& signal, std::uint32_t seen, Duration look) {
  clock_.wait(signal.bell, seen, look == Duration::max() ? HostTime::max() : clock_.now() + look);
}

}  // namespace bubblesim::capture
