// The words for kinds of records in CSV, JSON, tables, Chakra files (traces/import/
// chakra_attributes.hpp) and the Python module. snake_case, in the order of the enumerators.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "traces/trace.hpp"

namespace bubblesim::traces {

inline constexpr std::array<std::string_view, 13> kHostCallKindNames{
    "launch_kernel", "launch_graph", "copy", "memset", "stream_sync", "device_sync", "event_sync",
    "event_record", "stream_wait_event", "event_query", "alloc", "free", "other"};
inline constexpr std::array<std::string_view, 4> kDeviceOpKindNames{"kernel", "copy", "memset",
                                                                    "collective"};
inline constexpr std::array<std::string_view, 6> kCopyDirectionNames{
    "not_recorded", "host_to_device", "device_to_host", "device_to_device", "peer_to_peer",
    "host_to_host"};
inline constexpr std::array<std::string_view, 11> kCollectiveKindNames{
    "unknown", "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all",
    "send", "recv", "send_recv", "barrier"};
inline constexpr std::array<std::string_view, 4> kMarkerKindNames{"iteration", "phase",
                                                                  "micro_batch", "user"};
inline constexpr std::array<std::string_view, 4> kStallKindNames{"queue_full", "profiler",
                                                                 "module_load", "other"};

/// The word for `value` in its list above.
template <class Enum, std::size_t kCount>
[[nodiscard]] constexpr std::string_view name_in(
    const std::array<std::string_view, kCount>& names, Enum value) {
  const auto place = static_cast<std::size_t>(value);
  return place < kCount ? names[place] : std::string_view{"unknown"};
}

[[nodiscard]] constexpr std::string_view name_of(HostCallKind kind) {
  return name_in(kHostCallKindNames, kind);
}
[[nodiscard]] constexpr std::string_view name_of(DeviceOpKind kind) {
  return name_in(kDeviceOpKindNames, kind);
}
[[nodiscard]] constexpr std::string_view name_of(CopyDirection direction) {
  return name_in(kCopyDirectionNames, direction);
}
[[nodiscard]] constexpr std::string_view name_of(CollectiveKind kind) {
  return name_in(kCollectiveKindNames, kind);
}

static_assert(name_of(HostCallKind::kOther) == "other");
static_assert(name_of(DeviceOpKind::kCollective) == "collective");
static_assert(name_of(CopyDirection::kHostToHost) == "host_to_host");
static_assert(name_of(CollectiveKind::kBarrier) == "barrier");
static_assert(name_in(kMarkerKindNames, MarkerKind::kUser) == "user");
static_assert(name_in(kStallKindNames, StallKind::kOther) == "other");

}  // namespace bubblesim::traces
