// Everything that the Chakra import drops, repairs, infers or leaves out, by name.
#pragma once

#include "sim/base/counters.hpp"

namespace bubblesim::traces::chakra {

// Damage.
inline constexpr CounterSpec kTruncated{"chakra_truncated", Severity::kLoss,
    "the file ends inside a node: what follows was never written or was cut off"};
inline constexpr CounterSpec kGzipDamaged{"chakra_gzip_damaged", Severity::kLoss,
    "the compressed stream is cut or corrupt: only what unpacked before that is here"};
inline constexpr CounterSpec kDamagedNodes{"chakra_damaged_nodes_dropped", Severity::kLoss,
    "nodes that cannot be read; reading went on at the next one"};
inline constexpr CounterSpec kStreamBroken{"chakra_stream_broken", Severity::kLoss,
    "1: a length or a bracket is wrong, so that no later node can be found; the rest is lost"};
inline constexpr CounterSpec kDuplicateIds{"chakra_duplicate_ids_dropped", Severity::kLoss,
    "nodes whose id an earlier node of the file has"};
inline constexpr CounterSpec kCyclicDeps{"chakra_cyclic_dependencies_dropped", Severity::kLoss,
    "dependencies that close a cycle; the earlier node of the file was let go first"};
inline constexpr CounterSpec kBadTimes{"chakra_nodes_beyond_time_dropped", Severity::kLoss,
    "nodes whose start or duration is negative or beyond 73 years"};
inline constexpr CounterSpec kBadAttributes{"chakra_attributes_unreadable", Severity::kNotice,
    "attributes of a known name and an unexpected type or value"};
inline constexpr CounterSpec kInvalidUtf8{"chakra_names_not_utf8", Severity::kNotice,
    "names whose bytes are not UTF-8; the wrong bytes became U+FFFD"};

// Graph.
inline constexpr CounterSpec kMissingParents{"chakra_dependencies_missing", Severity::kNotice,
    "data dependencies on nodes that the file does not have"};
inline constexpr CounterSpec kMissingCallers{"chakra_control_parents_missing", Severity::kInfo,
    "control dependencies on nodes that the file does not have: converters drop callers"};
inline constexpr CounterSpec kAgainstTime{"chakra_dependencies_against_time_dropped",
    Severity::kNotice, "dependencies on nodes that start later than what depends on them"};
inline constexpr CounterSpec kThroughMetadata{"chakra_dependencies_through_metadata",
    Severity::kNotice, "dependencies on metadata nodes; they shape the layout but give no edge"};

// Times.
inline constexpr CounterSpec kStartsInferred{"chakra_starts_inferred", Severity::kNotice,
    "nodes without a recorded start, laid out by dependencies, durations and collectives"};
inline constexpr CounterSpec kMicroseconds{"chakra_microsecond_resolution", Severity::kNotice,
    "1: times are whole microseconds, shorter operations last zero"};
inline constexpr CounterSpec kNoDuration{"chakra_durations_missing", Severity::kNotice,
    "device nodes but collectives without a duration: below 1 us, or not recorded; they last zero"};

// Nodes.
inline constexpr CounterSpec kMetadataNodes{"chakra_metadata_nodes_skipped", Severity::kInfo,
    "metadata nodes; process groups are read from them"};
inline constexpr CounterSpec kUnknownNodes{"chakra_nodes_of_unknown_type", Severity::kNotice,
    "invalid nodes and types that the schema does not have; they keep their dependencies only"};
inline constexpr CounterSpec kStreamsAssumed{"chakra_streams_assumed", Severity::kNotice,
    "device nodes without stream or tid: computation on 0, communication on 1, memory on 2"};
inline constexpr CounterSpec kStreamsFromTid{"chakra_streams_from_tid", Severity::kInfo,
    "device nodes whose tid was taken as their stream"};
inline constexpr CounterSpec kOrphanOps{"chakra_device_ops_without_launch", Severity::kNotice,
    "device nodes that depend on no host node"};
inline constexpr CounterSpec kManyOps{"chakra_launches_of_many_ops", Severity::kInfo,
    "host nodes that several device nodes depend on: an operator that launches several kernels"};
inline constexpr CounterSpec kSyncsInserted{"chakra_syncs_from_dependencies", Severity::kNotice,
    "waits for a stream put before host nodes that depend on device nodes"};
inline constexpr CounterSpec kNoShapes{"chakra_launch_shapes_missing", Severity::kNotice,
    "kernels without grid and block: what they take of the GPU is not known"};

// Collectives.
inline constexpr CounterSpec kUnknownCollectives{"chakra_collectives_of_unknown_kind",
    Severity::kNotice, "collectives whose type is absent, or gather or scatter"};
inline constexpr CounterSpec kGroupsAssumed{"chakra_groups_assumed_world", Severity::kNotice,
    "collectives without pg_name, taken as of all ranks of the job"};
inline constexpr CounterSpec kInvolvedDims{"chakra_involved_dims_ignored", Severity::kNotice,
    "collectives along some dimensions of a topology only, which the trace does not hold"};
inline constexpr CounterSpec kSequenceByOrder{"chakra_collective_sequences_by_order",
    Severity::kNotice, "collectives numbered by their order in their group"};

inline constexpr CounterSpec kNotJoined{"chakra_collectives_not_joined", Severity::kLoss,
    "collectives without starts that no other rank's file has, or whose partners wait for one "
    "another in a circle: laid out without waiting"};

// Ranks.
inline constexpr CounterSpec kRankFromName{"chakra_rank_from_file_name", Severity::kInfo,
    "1: the file's name gave the rank, as Chakra has it"};
inline constexpr CounterSpec kRankFromOrder{"chakra_rank_from_file_order", Severity::kNotice,
    "1: neither the file nor its name gives a rank; its place among the files did"};

}  // namespace bubblesim::traces::chakra
