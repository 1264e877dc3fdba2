// Host calls by correlation: which call launched an operation, recorded an event, waited.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Launches a kernel, a graph, a copy or a memset?
[[nodiscard]] bool launches(HostCallKind kind);

class CallIndex {
 public:
  /// `calls` are sorted by start; those without correlation are left out.
  explicit CallIndex(std::span<const HostCall> calls)
      : CallIndex(calls, [](const HostCall& call) -> const HostCall& { return call; }) {}
  /// The same of records that hold a call, which `call_of` gives.
  template <class Records, class CallOf>
  CallIndex(const Records& records, CallOf call_of) {
    entries_.reserve(records.size());
    std::uint32_t place = 0;
    for (const auto& record : records) add(call_of(record), place++);
    order();
  }

  enum class Want : std::uint8_t { kLaunch, kEventRecord, kAny };
  /// The last wanted call with this correlation that starts at or before `at`, else the first
  /// wanted one after it, else the nearest of another sort. kNone: there is none.
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

}  // namespace bubblesim::traces
