#include "sim/observe/activity_meter.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace bubblesim::observe {

unsigned ActivityMeter::state() const {
  return (running_[0] > 0 ? kWork : 0) | (running_[1] > 0 ? kCollective : 0) |
         (running_[2] > 0 ? kFiller : 0);
}

void ActivityMeter::advance(SimTime now) {
  const SimTime from = std::max(last_, warmup_);
  if (now > from) in_state_[state()] += now - from;
  last_ = std::max(last_, now);
}

void ActivityMeter::started(Activity activity, SimTime now) {
  advance(now);
  ++running_[static_cast<std::size_t>(activity)];
}

void ActivityMeter::ended(Activity activity, SimTime now) {
  std::uint32_t& running = running_[static_cast<std::size_t>(activity)];
  BUBBLESIM_CHECK(running > 0, "an activity ended that had not started");
  advance(now);
  --running;
}

template <class Predicate>
Duration ActivityMeter::sum(Predicate counts) const {
  Duration total{};
  for (unsigned bits = 0; bits < in_state_.size(); ++bits) {
    if (counts(bits)) total += in_state_[bits];
  }
  return total;
}

Duration ActivityMeter::busy() const {
  return sum([](unsigned bits) { return bits != 0; });
}
Duration ActivityMeter::busy_without_collectives() const {
  return sum([](unsigned bits) { return (bits & (kWork | kFiller)) != 0; });
}
Duration ActivityMeter::training_busy() const {
  return sum([](unsigned bits) { return (bits & (kWork | kCollective)) != 0; });
}
Duration ActivityMeter::filler_busy() const {
  return sum([](unsigned bits) { return (bits & kFiller) != 0; });
}
Duration ActivityMeter::bubble() const {
  return sum([](unsigned bits) { return (bits & kWork) == 0; });
}
Duration ActivityMeter::collective_bubble() const {
  return sum([](unsigned bits) { return (bits & (kWork | kCollective)) == kCollective; });
}
Duration ActivityMeter::idle_bubble() const {
  return sum([](unsigned bits) { return (bits & (kWork | kCollective)) == 0; });
}
Duration ActivityMeter::recovered() const {
  return sum([](unsigned bits) { return (bits & (kWork | kFiller)) == kFiller; });
}
Duration ActivityMeter::recovered_collective() const {
  return sum([](unsigned bits) { return bits == (kCollective | kFiller); });
}

}  // namespace bubblesim::observe
