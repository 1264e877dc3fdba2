// Tells when copies and memsets end that are launched by themselves: by an event each.
//
// A kernel that stamps the time before and after a copy needs the compute engine. If contexts take
// turns, a request would wait for a turn at each copy, though copies need none: on an H100 a
// request of 1 ms took 12 ms so (2026-11-26). Stamps stay where records are asked for
// (JobPlan::record_operations), and in graphs, whose launches have no event of each operation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "capture/replay/cuda/driver.hpp"
#include "capture/replay/cuda/record_ring.hpp"
#include "capture/replay/job_plan.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture::cuda {

class GraphSet;

class CopyEvents {
 public:
  CopyEvents(const Driver& driver, ContextHandle context) : driver_(driver), context_(context) {}
  ~CopyEvents();
  CopyEvents(const CopyEvents&) = delete;
  CopyEvents& operator=(const CopyEvents&) = delete;

  /// Events of the operations of `plan` that are told by one. The context is current.
  [[nodiscard]] Result<void> make(const JobPlan& plan, const GraphSet& graphs);

  /// Whether the operation's end is told by an event, and no start is.
  [[nodiscard]] bool tells(std::uint32_t op) const { return place_[op] != kNone; }
  /// After execution `n` (from 1 on), on its stream. The context is current.
  [[nodiscard]] Result<void> record(std::uint32_t op, std::uint64_t n, StreamHandle stream) const;
  /// Any thread. A driver that fails says not yet: the device's health is looked at elsewhere.
  [[nodiscard]] bool ended(std::uint32_t op, std::uint64_t n) const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  [[nodiscard]] EventHandle event(std::uint32_t op, std::uint64_t n) const {
    return events_[place_[op]][(n - 1) & (kSlots - 1)];
  }

  const Driver& driver_;
  ContextHandle context_;
  std::vector<std::uint32_t> place_;  ///< in events_, by operation
  std::vector<std::array<EventHandle, kSlots>> events_;
};

}  // namespace bubblesim::capture::cuda
