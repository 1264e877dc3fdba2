// Host calls by correlation: finds the call that launched an operation, recorded an event, or
// waited.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::traces {

class CallIndex {
 public:
  /// `calls` are HostCalls, sorted by start; those without correlation are left out.
  template <class Calls>
  explicit CallIndex(const Calls& calls) {
    entries_.reserve(calls.size());
    for (std::uint32_t i = 0; i < calls.size(); ++i) {
      const HostCall& call = calls[i];
      if (call.correlation == 0) continue;
      entries_.push_back({call.correlation, call.start, i, call.kind});
    }
    order();
  }

  enum class Want : std::uint8_t { kLaunch, kEventRecord, kAny };
  /// The last wanted call with this correlation that starts at or before `at`, else the first
  /// wanted one after it, else the nearest of another kind. kNone: none.
  [[nodiscard]] std::uint32_t find(std::uint64_t correlation, TraceTime at, Want want) const;

  /// Gives every call but the first of a correlation a new one; returns how many.
  /// `calls` are those of the index, in its order.
  std::uint64_t renumber(std::span<HostCall> calls) const;

 private:
  struct Entry {
    std::uint64_t correlation;
    TraceTime start;
    std::uint32_t call;
    HostCallKind kind;
  };
  void order();

  std::vector<Entry> entries_;  ///< by correlation, then by call
};

struct LaunchCounts {
  std::uint64_t orphans = 0;    ///< operations without a launch
  std::uint64_t early = 0;      ///< operations that start before their launch
  std::uint64_t of_graphs = 0;  ///< operations that share their launch
  std::uint64_t idle = 0;       ///< launches without operations
};

/// Sets `launch` of every operation. `calls` are those of the index.
template <class Ops, class Calls>
LaunchCounts link_launches(const CallIndex& index, Ops& ops, const Calls& calls) {
  LaunchCounts counts;
  std::vector<std::uint32_t> uses(calls.size(), 0);
  for (DeviceOp& op : ops) {
    op.launch = index.find(op.correlation, op.start, CallIndex::Want::kLaunch);
    if (op.launch == kNone) {
      ++counts.orphans;
      continue;
    }
    ++uses[op.launch];
    if (op.start < calls[op.launch].start) ++counts.early;
  }
  for (const DeviceOp& op : ops) {
    if (op.launch != kNone && uses[op.launch] > 1) ++counts.of_graphs;
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i] == 0 && is_launch(calls[i].kind)) ++counts.idle;
  }
  return counts;
}

}  // namespace bubblesim::traces
