#include "capture/replay/cuda/flights.hpp"

#include <algorithm>

#include "capture/replay/cuda/graph_set.hpp"

namespace bubblesim::capture::cuda {

Result<void> CopyEvents::make(const JobPlan& plan, const GraphSet& graphs) {
  place_.assign(plan.program.ops.size(), kNone);
  if (plan.record_operations) return {};
  for (std::uint32_t op = 0; op < place_.size(); ++op) {
    if (is_kernel(plan.program.ops[op].kind) || graphs.holding(op) != nullptr) continue;
    place_[op] = static_cast<std::uint32_t>(events_.size());
    events_.emplace_back();
    for (EventHandle& event : events_.back())
      BUBBLESIM_CUDA(driver_, event_create, &event, kEventDisableTiming);
  }
  return {};
}

CopyEvents::~CopyEvents() {
  for (const auto& of_operation : events_)
    for (EventHandle event : of_operation)
      if (event != nullptr) (void)driver_.event_destroy(event);
}

Result<void> CopyEvents::record(std::uint32_t op, std::uint64_t n, StreamHandle stream) const {
  BUBBLESIM_CUDA(driver_, event_record, event(op, n), stream);
  return {};
}

bool CopyEvents::ended(std::uint32_t op, std::uint64_t n) const {
  (void)driver_.set_current(context_);
  return driver_.event_query(event(op, n)) == Status::kSuccess;
}

Flights::Flights(const RecordRing& ring, const CopyEvents& copies,
                 const program::Program& program)
    : ring_(ring),
      copies_(copies),
      program_(program),
      counts_(program.ops.size()),
      lanes_(program.stream_count) {}

std::uint64_t Flights::launched_count(std::uint32_t op) const { return counts_[op].launched; }
std::uint64_t Flights::ended_count(std::uint32_t op) const { return counts_[op].ended; }
std::uint64_t Flights::in_flight(std::uint32_t stream) const { return lanes_[stream].count; }

std::string Flights::waited_for() const {
  std::string text;
  for (const Lane& lane : lanes_) {
    if (lane.flights.empty()) continue;
    const Flight& first = lane.flights.front();
    text += (text.empty() ? "" : "; ") + std::string("op ") + std::to_string(first.op.op) +
            ", execution " + std::to_string(first.n) +
            (ring_.started(first.op.op, first.n) ? ", begun" : "");
  }
  return text;
}

void Flights::launched(const OpInstance& op, std::uint32_t stream, HostTime now) {
  const std::uint64_t n = ++counts_[op.op].launched;
  ++in_flight_;
  ++lanes_[stream].count;
  lanes_[stream].flights.push_back({op, n, now, false});
}

bool Flights::look(const ClockTrack& clock, HostTime now, DeviceListener* listener) {
  bool progressed = false;
  for (Lane& lane : lanes_)
    if (!lane.flights.empty()) progressed = look_at(lane, clock, now, listener) || progressed;
  return progressed;
}

bool Flights::look_at(Lane& lane, const ClockTrack& clock, HostTime now,
                      DeviceListener* listener) {
  bool progressed = false;
  while (!lane.flights.empty()) {
    Flight& flight = lane.flights.front();
    const std::uint32_t op = flight.op.op;
    if (copies_.tells(op)) {
      if (!copies_.ended(op, flight.n)) return progressed;
      end(lane, {std::min(std::max(flight.launched, lane.last_end), now), now}, listener);
    } else {
      const bool ended = ring_.ended(op, flight.n);
      if (!ended && (flight.told_start || !ring_.started(op, flight.n))) return progressed;
      const HostTime start = clock.host(ring_.start_ns(op, flight.n));
      if (!flight.told_start && listener != nullptr) listener->on_started(flight.op, start);
      flight.told_start = true;
      if (!ended) return true;
      const std::uint64_t end_ns = ring_.end_ns(op, flight.n);
      latest_end_ns_ = std::max(latest_end_ns_, end_ns);
      const bool kernel = program::is_kernel(program_.ops[op].kind);
      end(lane, {start, clock.host(end_ns) + (kernel ? kBesideBlocks : Duration{})}, listener);
    }
    progressed = true;
  }
  return progressed;
}

void Flights::end(Lane& lane, const Times& times, DeviceListener* listener) {
  const Flight& flight = lane.flights.front();
  if (listener != nullptr) {
    if (!flight.told_start) listener->on_started(flight.op, times.start);
    listener->on_finished(flight.op, times.start, times.end);
  }
  lane.last_end = times.end;
  ++counts_[flight.op.op].ended;
  --lane.count;
  --in_flight_;
  lane.flights.pop_front();
}

}  // namespace bubblesim::capture::cuda
