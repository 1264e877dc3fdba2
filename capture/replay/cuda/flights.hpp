// Executions in flight: launched, not yet seen to end; in the order of their streams.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "capture/replay/cuda/device_clock.hpp"
#include "capture/replay/cuda/driver.hpp"
#include "capture/replay/cuda/graph_set.hpp"
#include "capture/replay/cuda/record_ring.hpp"
#include "capture/replay/device.hpp"
#include "capture/replay/job_plan.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture::cuda {

// Detects by events when copies and memsets outside of graphs end.
//
// A kernel that stamps the time before and after a copy needs the compute engine. If contexts are
// time-sliced, a request would wait for a slice at each copy, though copies need none: on an H100 a
// request of 1 ms then took 12 ms (2026-11-26). Stamps remain for recorded operations
// (JobPlan::record_operations) and in graphs, whose launches have no event for each operation.

class CopyEvents {
 public:
  CopyEvents(const Driver& driver, ContextHandle context) : driver_(driver), context_(context) {}
  /// Makes an event for each operation of `plan` that needs one. The context is current.
  [[nodiscard]] Result<void> make(const JobPlan& plan, const GraphSet& graphs) {
    place_.assign(plan.program.ops.size(), kNone);
    if (plan.record_operations) return {};
    for (std::uint32_t op = 0; op < place_.size(); ++op) {
      if (is_kernel(plan.program.ops[op].kind) || graphs.holding(op) != nullptr) continue;
      place_[op] = static_cast<std::uint32_t>(events_.size());
      for (OwnEvent& event : events_.emplace_back()) {
        BUBBLESIM_ASSIGN_OR_RETURN(event, make_event(driver_));
      }
    }
    return {};
  }

  /// Whether an event marks the operation's end; its start is then unknown.
  [[nodiscard]] bool tells(std::uint32_t op) const { return place_[op] != kNone; }
  /// Records the event after execution `n` (from 1 on), on its stream. The context is current.
  [[nodiscard]] Result<void> record(std::uint32_t op, std::uint64_t n, StreamHandle stream) const {
    BUBBLESIM_CUDA(driver_, event_record, event(op, n), stream);
    return {};
  }
  /// Any thread. False if the driver fails: the device's health is checked elsewhere.
  [[nodiscard]] bool ended(std::uint32_t op, std::uint64_t n) const {
    (void)driver_.set_current(context_);
    return driver_.event_query(event(op, n)) == Status::kSuccess;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  [[nodiscard]] EventHandle event(std::uint32_t op, std::uint64_t n) const {
    return events_[place_[op]][(n - 1) & (kSlots - 1)].get();
  }

  const Driver& driver_;
  ContextHandle context_;
  std::vector<std::uint32_t> place_;  ///< in events_, by operation
  std::vector<std::array<OwnEvent, kSlots>> events_;
};

/// The class is not thread-safe, but for the counts, which any thread may read.
class Flights {
 public:
  /// All arguments outlive it.
  Flights(const RecordRing& ring, const CopyEvents& copies, const program::Program& program)
      : ring_(ring),
        copies_(copies),
        program_(program),
        counts_(program.ops.size()),
        lanes_(program.stream_count) {}

  /// The next execution of `op` was put on `stream`.
  void launched(const OpInstance& op, std::uint32_t stream, HostTime now) {
    const std::uint64_t n = ++counts_[op.op].launched;
    ++in_flight_;
    ++lanes_[stream].count;
    lanes_[stream].flights.push_back({op, n, now, false});
  }

  /// Reports the starts and ends recorded since the last look, in order within a stream. Returns
  /// whether there were any. An operation with an event ends when the event is seen, at `now`, and
  /// starts at its launch or where its stream's last operation ended.
  bool look(const ClockTrack& clock, HostTime now, DeviceListener* listener) {
    bool progressed = false;
    for (Lane& lane : lanes_)
      if (!lane.flights.empty()) progressed = look_at(lane, clock, now, listener) || progressed;
    return progressed;
  }

  /// Device time of the latest end that was seen; 0: none.
  [[nodiscard]] std::uint64_t latest_end_ns() const { return latest_end_ns_; }

  [[nodiscard]] std::uint64_t launched_count(std::uint32_t op) const {
    return counts_[op].launched;
  }
  [[nodiscard]] std::uint64_t ended_count(std::uint32_t op) const { return counts_[op].ended; }
  [[nodiscard]] std::uint64_t in_flight() const { return in_flight_.load(); }
  [[nodiscard]] std::uint64_t in_flight(std::uint32_t stream) const { return lanes_[stream].count; }

  /// The first execution that each stream of a hung device waits for: "op 7, execution 3, begun".
  [[nodiscard]] std::string waited_for() const {
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
  bool look_at(Lane& lane, const ClockTrack& clock, HostTime now, DeviceListener* listener) {
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
  void end(Lane& lane, const Times& times, DeviceListener* listener) {
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

  const RecordRing& ring_;
  const CopyEvents& copies_;
  const program::Program& program_;
  std::vector<Counts> counts_;
  std::vector<Lane> lanes_;
  std::atomic<std::uint64_t> in_flight_{0};
  std::uint64_t latest_end_ns_ = 0;
};

}  // namespace bubblesim::capture::cuda
