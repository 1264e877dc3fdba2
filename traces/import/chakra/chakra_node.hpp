// The metadata and the nodes of one Chakra file of either form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "traces/import/chakra/chakra_attributes.hpp"
#include "traces/import/text_window.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::chakra {

// The counters of everything that the Chakra import drops, repairs, infers or leaves out.

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

/// An attribute's value: a number, a text, numbers or texts. Of another type: all are absent.
/// Signed numbers are in two's complement.
struct AttributeValue {
  std::optional<std::uint64_t> number;
  std::optional<std::string_view> text;
  std::optional<std::vector<std::uint64_t>> numbers;
  std::vector<std::string> texts;
};

/// The attributes that bubblesim adds to nodes that it writes.
struct OwnFields {
  enum class What : std::uint8_t { kNone, kDeviceOp, kHostCall, kMarker, kStall };
  What what = What::kNone;
  std::uint8_t kind = 0;  ///< kDeviceOp: DeviceOpKind; kHostCall: HostCallKind; else unused
  std::uint8_t sort = 0;  ///< kMarker: MarkerKind; kStall: StallKind; else unused
  CopyDirection direction = CopyDirection::kNone;
  bool has_shape = false;
  std::optional<std::int64_t> start_ns, duration_ns;
  std::optional<std::uint32_t> stream, thread;  ///< indices into the file's tables
  std::uint64_t correlation = 0;
  std::uint64_t event = 0;
  std::uint64_t bytes = 0;
  std::int64_t number = -1;
  LaunchShape shape;
  Collective collective;  ///< but for its bytes
  std::vector<std::uint64_t> inferred_edges;  ///< ids among data_deps; once resolved, indices
};

struct ChakraNode {
  std::uint64_t id = 0;
  NameId name{};
  std::int32_t type = kInvalidNode;
  bool on_cpu = false;
  bool involves_dims = false;          ///< "involved_dim" excludes a dimension
  std::vector<std::uint64_t> control;  ///< ids; once resolved, indices of nodes
  std::vector<std::uint64_t> data;     ///< ids; once resolved, indices of nodes
  std::optional<std::int64_t> start_ns;
  std::int64_t duration_ns = 0;
  std::optional<std::uint64_t> stream, tid;
  std::optional<std::int64_t> comm_type;
  std::optional<CollectiveKind> collective;  ///< nothing: no device node, or no collective
  std::uint64_t comm_size = 0;
  std::uint64_t tensor_size = 0;
  std::optional<std::uint32_t> source, destination;
  std::optional<NameId> group;
  std::uint32_t lane = kNone;  ///< index of the stream or thread that it runs on
  /// Set if the layout ended this collective without some of its ranks: its number in the job, from
  /// 1 on. Else 0.
  std::uint32_t left_meeting = 0;
  std::unique_ptr<OwnFields> own;

  [[nodiscard]] bool is_comm() const { return type >= kCommSendNode && type <= kCommCollNode; }
  [[nodiscard]] bool is_known() const { return type > kMetadataNode && type <= kCommCollNode; }
  [[nodiscard]] bool on_device() const { return is_known() && !on_cpu; }
  [[nodiscard]] bool on_host() const { return is_known() && on_cpu; }
};

struct ChakraGroup {
  NameId name{};
  std::vector<std::uint32_t> ranks;
  std::uint32_t size = 0;
};

/// One file.
struct File {
  bool native = false;  ///< written by bubblesim: exact times, own fields
  std::optional<std::uint32_t> rank, world_size;
  std::string version;
  std::vector<ChakraNode> nodes;
  std::vector<ChakraGroup> groups;
  RankTrace trace;  ///< names, streams, threads, device and counters so far
};

/// Stores an attribute of a node, or of the file's metadata, in its field; skips unknown ones.
void apply_attribute(std::string_view name, const AttributeValue& value, ChakraNode& node,
                     File& file);
void apply_metadata(std::string_view name, const AttributeValue& value, File& file);

/// Reads the process groups that a metadata node's inputs declare.
void read_groups(std::string_view values, File& file);

/// Interns a name; replaces and counts bytes that are not UTF-8.
[[nodiscard]] NameId intern_name(std::string_view text, File& file);

/// The schema's microseconds as nanoseconds; nothing beyond 73 years.
[[nodiscard]] std::optional<std::int64_t> micros_to_ns(std::uint64_t micros);

/// Times of this size and above are refused: 2^61 ns, 73 years.
inline constexpr std::int64_t kTimeLimit = std::int64_t{1} << 61U;

// Reads a Chakra file of either form: a stream of protobuf messages, each behind its length, or
// JSON text.

/// Reads the protobuf stream from the window's anchor on; a message longer than `limit` ends it.
void read_stream(TextWindow& window, std::size_t limit, File& file);

/// Reads JSON text: the form of Chakra's feeder, an object with "workload_graph", or that of its
/// jsonizer, an object for each message.
void read_json(TextWindow& window, File& file);

/// Whether a JSON text begins like Chakra's.
[[nodiscard]] bool is_chakra_json(std::string_view head);
/// Whether bytes begin like a stream of GlobalMetadata and Nodes.
[[nodiscard]] bool is_chakra_stream(std::string_view head);

}  // namespace bubblesim::traces::chakra
