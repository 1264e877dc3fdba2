// Builds a rank's trace, one line of code a record, in whole microseconds, so that a test's numbers
// can be summed by hand.
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/launch_shapes.hpp"

namespace bubblesim::traces::testing {

inline TraceTime at(std::int64_t us) { return TraceTime{Duration{us * 1000}}; }
inline constexpr Duration us(std::int64_t count) { return Duration{count * 1000}; }

class SmallTrace {
 public:
  SmallTrace() { rank_.threads.resize(4), rank_.streams.resize(4); }

  /// Adds a call of [from, to) us; returns its index for `op`.
  std::uint32_t call(HostCallKind kind, std::int64_t from, std::int64_t to,
                     std::uint32_t thread = 0) {
    HostCall record;
    record.start = at(from);
    record.duration = us(to - from);
    record.kind = kind;
    record.thread = ThreadId{thread};
    record.name = rank_.names.intern("call");
    rank_.host_calls.push_back(record);
    return static_cast<std::uint32_t>(rank_.host_calls.size() - 1);
  }

  DeviceOp& op(DeviceOpKind kind, std::string_view name, std::int64_t from, std::int64_t to,
               std::uint32_t launch = kNone) {
    DeviceOp record;
    record.start = at(from);
    record.duration = us(to - from);
    record.kind = kind;
    record.name = rank_.names.intern(name);
    record.launch = launch;
    record.shape = rank_.shapes.intern(kUnknownShape);
    rank_.device_ops.push_back(record);
    return rank_.device_ops.back();
  }

  DeviceOp& kernel(std::int64_t from, std::int64_t to, std::uint32_t launch = kNone) {
    return op(DeviceOpKind::kKernel, "kernel", from, to, launch);
  }

  DeviceOp& collective(CollectiveKind kind, std::int64_t from, std::int64_t to,
                       std::uint64_t bytes = 0) {
    Collective record;
    record.kind = kind;
    record.bytes = bytes;
    rank_.collectives.push_back(record);
    DeviceOp& added = op(DeviceOpKind::kCollective, "nccl", from, to);
    added.collective = static_cast<std::uint32_t>(rank_.collectives.size() - 1);
    added.stream = StreamId{1};
    return added;
  }

  void iteration(std::int64_t number, std::int64_t from, std::int64_t to,
                 std::uint32_t thread = 0) {
    Marker record;
    record.start = at(from);
    record.duration = us(to - from);
    record.thread = ThreadId{thread};
    record.kind = MarkerKind::kIteration;
    record.number = number;
    rank_.markers.push_back(record);
  }

  RankTrace& rank() { return rank_; }

 private:
  RankTrace rank_;
};

}  // namespace bubblesim::traces::testing
