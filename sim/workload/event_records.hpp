// Which operation a recorded event stands for: of the last one launched on its stream before the
// event was recorded, and of what the stream was told to wait for after that one, whichever ended
// last. Internal to the builder.
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
    TraceTime at;  ///< of the call
    std::uint32_t op;
  };
  [[nodiscard]] const Record* last_before(std::uint64_t event, TraceTime wait) const;
  [[nodiscard]] static const Launched* last_of(const std::vector<Launched>& entries,
                                               TraceTime before);
  [[nodiscard]] std::uint32_t held_since(std::uint32_t stream, TraceTime at) const;
  [[nodiscard]] std::uint32_t later(std::uint32_t a, std::uint32_t b) const;

  const Draft& draft_;

  std::unordered_map<std::uint64_t, std::vector<Record>> records_;  ///< by event, in time order
  std::vector<std::vector<Launched>> launched_;                     ///< by stream, in time order
  std::vector<std::vector<Launched>> held_;  ///< by stream: its waits, and what each is for
};

}  // namespace bubblesim::workload
