// The reader's promise for any file: every id points at a record. For tests and the fuzzer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "traces/launch_shapes.hpp"

namespace bubblesim::traces::format::testing {

inline bool valid_index(std::uint32_t index, std::size_t size) {
  return index == kNone || index < size;
}

/// Does every id of every record point at a record?
inline bool ids_are_valid(const RankTrace& t) {
  return std::all_of(t.host_calls.begin(), t.host_calls.end(), [&](const HostCall& call) {
    return call.name.index() < t.names.size() && call.thread.index() < t.threads.size() &&
           valid_index(call.stream, t.streams.size());
  }) && std::all_of(t.device_ops.begin(), t.device_ops.end(), [&](const DeviceOp& op) {
    return op.name.index() < t.names.size() && op.stream.index() < t.streams.size() &&
           (!has_shape(op) || op.shape.index() < t.shapes.size()) &&
           valid_index(op.launch, t.host_calls.size()) &&
           valid_index(op.collective, t.collectives.size());
  }) && std::all_of(t.edges.begin(), t.edges.end(), [&](const Edge& edge) {
    return edge.before.index() < t.device_ops.size() && edge.after.index() < t.device_ops.size();
  }) && std::all_of(t.collectives.begin(), t.collectives.end(), [&](const Collective& item) {
    return item.group.index() < t.names.size();
  }) && std::all_of(t.markers.begin(), t.markers.end(), [&](const Marker& marker) {
    return marker.name.index() < t.names.size() && marker.thread.index() < t.threads.size();
  });
}

inline bool ids_are_valid(const JobTrace& job) {
  return std::all_of(job.ranks.begin(), job.ranks.end(),
                     [](const RankTrace& trace) { return ids_are_valid(trace); });
}

}  // namespace bubblesim::traces::format::testing
