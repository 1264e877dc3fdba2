#include "capture/replay/cuda/flights.hpp"

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

bool Flights::look(const ClockOffset& offset, DeviceListener* listener) {
  bool any = false;
  for (Lane& lane : lanes_)
    if (!lane.flights.empty()) any = look_at(lane, offset, listener) || any;
  return any;
}

bool Flights::look_at(Lane& lane, const ClockOffset& offset, DeviceListener* listener) {
  bool any = false;
  while (!lane.flights.empty()) {
    Flight& flight = lane.flights.front();
    const std::uint32_t op = flight.op.op;
    const bool ended = ring_.ended(op, flight.n);
    if (!ended && (flight.told_start || !ring_.started(op, flight.n))) return any;
    any = true;
    const HostTime start = offset.host(ring_.start_ns(op, flight.n));
    if (!flight.told_start && listener != nullptr) listener->on_started(flight.op, start);
    flight.told_start = true;
    if (!ended) return any;
    if (listener != nullptr)
      listener->on_finished(flight.op, start, offset.host(ring_.end_ns(op, flight.n)));
    ++counts_[op].ended;
    --lane.count;
    --in_flight_;
    lane.flights.pop_front();
  }
  return any;
}

}  // namespace bubblesim::capture::cuda
