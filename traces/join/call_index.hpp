// Host calls by correlation: finds the call that launched an operation, recorded an event, or
// waited.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::traces {

class CallIndex {
 public:
  /// `call_of` maps a record to its call. `records` are sorted by the start of their calls; calls
  /// without correlation are left out.
  template <class Records, class CallOf = std::identity>
  explicit CallIndex(const Records& records, CallOf call_of = {}) {
    entries_.reserve(records.size());
    std::uint32_t place = 0;
    for (const auto& record : records) add(std::invoke(call_of, record), place++);
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
  void add(const HostCall& call, std::uint32_t place) {
    if (call.correlation == 0) return;
    entries_.push_back({call.correlation, call.start, place, call.kind});
  }
  void order();

  std::vector<Entry> entries_;  ///< by correlation, then by call
};

struct LaunchCounts {
  std::uint64_t orphans = 0;    ///< operations without a launch
  std::uint64_t early = 0;      ///< operations that start before their launch
  std::uint64_t of_graphs = 0;  ///< operations that share their launch
  std::uint64_t idle = 0;       ///< launches without operations
};

/// Sets `launch` of every operation. `calls` are those of the index. `op_of` maps an element of
/// `ops` to its operation, `call_of` an element of `calls` to its call.
template <class Ops, class Calls, class OpOf = std::identity, class CallOf = std::identity>
LaunchCounts link_launches(const CallIndex& index, Ops& ops, const Calls& calls, OpOf op_of = {},
                           CallOf call_of = {}) {
  LaunchCounts counts;
  std::vector<std::uint32_t> uses(calls.size(), 0);
  for (auto& entry : ops) {
    DeviceOp& op = std::invoke(op_of, entry);
    op.launch = index.find(op.correlation, op.start, CallIndex::Want::kLaunch);
    if (op.launch == kNone) {
      ++counts.orphans;
      continue;
    }
    ++uses[op.launch];
    if (op.start < std::invoke(call_of, calls[op.launch]).start) ++counts.early;
  }
  for (const auto& entry : ops) {
    const DeviceOp& op = std::invoke(op_of, entry);
    if (op.launch != kNone && uses[op.launch] > 1) ++counts.of_graphs;
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i] == 0 && is_launch(std::invoke(call_of, calls[i]).kind)) ++counts.idle;
  }
  return counts;
}

}  // namespace bubblesim::traces
