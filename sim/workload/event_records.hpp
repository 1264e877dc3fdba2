// Which operation a recorded event stands for: the last one launched on its stream before the
// event was recorded. Internal to the builder.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/workload/program_draft.hpp"

namespace bubblesim::workload {

class EventRecords {
 public:
  /// Calls and operations of `draft` are collected. Only records whose event and stream the
  /// recording gives are known.
  explicit EventRecords(const Draft& draft);

  /// Is the last record of `event` before `wait` known?
  [[nodiscard]] bool knows(std::uint64_t event, TraceTime wait) const;
  /// The operation that a wait for `event` at `wait` waits for, into Draft::ops; kNoIndex: the
  /// record is not known, or nothing was launched before it.
  [[nodiscard]] std::uint32_t awaited(std::uint64_t event, TraceTime wait) const;

 private:
  struct Record {
    TraceTime at;
    std::uint32_t stream;
  };
  struct Launched {
    TraceTime at;
    std::uint32_t op;
  };
  [[nodiscard]] const Record* last_before(std::uint64_t event, TraceTime wait) const;

  std::unordered_map<std::uint64_t, std::vector<Record>> records_;  ///< by event, in time order
  std::vector<std::vector<Launched>> launched_;                     ///< by stream, in time order
};

}  // namespace bubblesim::workload
