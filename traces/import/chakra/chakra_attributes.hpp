// The attributes that bubblesim adds to Chakra nodes, shared by import and export. Their names
// begin with "bubblesim_"; other readers skip them. Exact times are in bubblesim_start_ns and
// bubblesim_duration_ns; the schema's own times are rounded to microseconds.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/trace.hpp"

namespace bubblesim::traces::chakra {

/// Version of the attributes below; a file's metadata has it as "bubblesim_chakra".
inline constexpr std::uint64_t kAttributesVersion = 1;

/// Numbers of the schema's NodeType.
enum NodeType : std::int32_t {
  kInvalidNode = 0, kMetadataNode = 1, kMemLoadNode = 2, kMemStoreNode = 3, kCompNode = 4,
  kCommSendNode = 5, kCommRecvNode = 6, kCommCollNode = 7,
};

inline constexpr std::array<std::string_view, 8> kNodeTypeNames{
    "INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE",
    "COMP_NODE", "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE"};

// Device operations ("bubblesim_kind"), collectives ("bubblesim_collective"), markers and stalls
// use the words of record_names.hpp: a change of one raises kAttributesVersion.

/// "bubblesim_kind" of host calls, by HostCallKind. Device operations have the same attribute, so
/// that calls of copies and memsets have words here that differ from record_names.hpp's.
inline constexpr std::array<std::string_view, 13> kHostKinds{
    "launch_kernel", "launch_graph", "copy_call", "memset_call", "stream_sync", "device_sync",
    "event_sync", "event_record", "stream_wait_event", "event_query", "alloc", "free", "other"};
/// "bubblesim_kind" of markers and stalls, which are METADATA_NODEs.
inline constexpr std::string_view kMarkerKind = "marker";
inline constexpr std::string_view kStallKind = "stall";

/// "bubblesim_direction", by CopyDirection.
inline constexpr std::array<std::string_view, 6> kDirections{
    "none", "host_to_device", "device_to_host", "device_to_device", "peer_to_peer",
    "host_to_host"};

/// The enumerator whose index `name` has in a table of names.
template <class Enum, std::size_t Size>
[[nodiscard]] std::optional<Enum> value_of(const std::array<std::string_view, Size>& names,
                                           std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

/// Numbers of the schema's CollectiveCommType; nothing for kinds that it lacks.
[[nodiscard]] constexpr std::optional<std::int64_t> comm_type_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce: return 0;
    case CollectiveKind::kReduce: return 1;
    case CollectiveKind::kAllGather: return 2;
    case CollectiveKind::kBroadcast: return 5;
    case CollectiveKind::kAllToAll: return 6;
    case CollectiveKind::kReduceScatter: return 7;
    case CollectiveKind::kBarrier: return 9;
    default: return std::nullopt;
  }
}

/// kUnknown for gather, scatter and numbers outside of the schema.
[[nodiscard]] constexpr CollectiveKind kind_of_comm_type(std::int64_t number) {
  switch (number) {
    case 0: return CollectiveKind::kAllReduce;
    case 1: return CollectiveKind::kReduce;
    case 2: return CollectiveKind::kAllGather;
    case 5: return CollectiveKind::kBroadcast;
    case 6: return CollectiveKind::kAllToAll;
    case 7: case 8: return CollectiveKind::kReduceScatter;
    case 9: return CollectiveKind::kBarrier;
    default: return CollectiveKind::kUnknown;
  }
}

}  // namespace bubblesim::traces::chakra
