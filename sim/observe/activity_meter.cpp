#include "sim/observe/activity_meter.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace bubblesim::observe {

void ActivityMeter::advance(SimTime now) {
  const SimTime from = std::max(last_, warmup_);
  if (now > from) in_state_[state_] += now - from;
  last_ = std::max(last_, now);
}

void ActivityMeter::started(Activity activity, SimTime now) {
  advance(now);
  ++running_[static_cast<std::size_t>(activity)];
  state_ |= bit_of(activity);
}

void ActivityMeter::ended(Activity activity, SimTime now) {
  std::uint32_t& running = running_[static_cast<std::size_t>(activity)];
  BUBBLESIM_CHECK(running > 0, "an activity ended that had not started");
  advance(now);
  if (--running == 0) state_ &= ~bit_of(activity);
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
  return sum([](unsigned bits) { return (bits & ~kCollective) != 0; });
}
Duration ActivityMeter::training_busy() const {
  return sum([](unsigned bits) { return (bits & kTraining) != 0; });
}
Duration ActivityMeter::filler_busy() const {
  return sum([](unsigned bits) { return (bits & kFiller) != 0; });
}
Duration ActivityMeter::bubble() const {
  return sum([](unsigned bits) { return (bits & kKernel) == 0; });
}
Duration ActivityMeter::collective_bubble() const {
  return sum([](unsigned bits) { return (bits & (kKernel | kCollective)) == kCollective; });
}
Duration ActivityMeter::transfer_bubble() const {
  return sum([](unsigned bits) { return (bits & kTraining) == kTransfer; });
}
Duration ActivityMeter::idle_bubble() const {
  return sum([](unsigned bits) { return (bits & kTraining) == 0; });
}
Duration ActivityMeter::recovered() const {
  return sum([](unsigned bits) { return (bits & (kKernel | kFiller)) == kFiller; });
}
Duration ActivityMeter::recovered_collective() const {
  return sum([](unsigned bits) {
    return (bits & (kKernel | kCollective | kFiller)) == (kCollective | kFiller);
  });
}
Duration ActivityMeter::recovered_transfer() const {
  return sum([](unsigned bits) { return bits == (kTransfer | kFiller); });
}

}  // namespace bubblesim::observe
