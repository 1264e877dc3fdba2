#include "capture/replay/cuda/flights.hpp"

#include <algorithm>

namespace bubblesim::capture::cuda {

Flights::Flights(const RecordRing& ring, std::uint32_t operations, std::uint32_t streams)
    : ring_(ring), counts_(operations), lanes_(streams) {}

std::uint64_t Flights::launched_count(std::uint32_t op) const { return counts_[op].launched; }
std::uint64_t Flights::ended_count(std::uint32_t op) const { return counts_[op].ended; }
std::uint64_t Flights::in_flight(std::uint32_t stream) const { return lanes_[stream].count; }

void Flights::launched(const OpInstance& op, std::uint32_t stream) {
  const std::uint64_t n = ++counts_[op.op].launched;
  ++in_flight_;
  ++lanes_[stream].count;
  lanes_[stream].flights.push_back({op, n, false});
}

bool Flights::look(const ClockTrack& clock, DeviceListener* listener) {
  bool any = false;
  for (Lane& lane : lanes_)
    if (!lane.flights.empty()) any = look_at(lane, clock, listener) || any;
  return any;
}

bool Flights::look_at(Lane& lane, const ClockTrack& clock, DeviceListener* listener) {
  bool any = false;
  while (!lane.flights.empty()) {
    Flight& flight = lane.flights.front();
    const std::uint32_t op = flight.op.op;
    const bool ended = ring_.ended(op, flight.n);
    if (!ended && (flight.told_start || !ring_.started(op, flight.n))) return any;
    any = true;
    const HostTime start = clock.host(ring_.start_ns(op, flight.n));
    if (!flight.told_start && listener != nullptr) listener->on_started(flight.op, start);
    flight.told_start = true;
    if (!ended) return any;
    const std::uint64_t end_ns = ring_.end_ns(op, flight.n);
    if (listener != nullptr) listener->on_finished(flight.op, start, clock.host(end_ns));
    latest_end_ns_ = std::max(latest_end_ns_, end_ns);
    ++counts_[op].ended;
    --lane.count;
    --in_flight_;
    lane.flights.pop_front();
  }
  return any;
}

}  // namespace bubblesim::capture::cuda
