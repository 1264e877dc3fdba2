// What one Chakra file says, whichever form it has: its metadata and its nodes, as read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "traces/import/byte_stream.hpp"
#include "traces/import/chakra_attributes.hpp"
#include "traces/trace.hpp"

namespace bubblesim::chakra_et {
class Node;
}  // namespace bubblesim::chakra_et

namespace bubblesim::traces::chakra {

/// An attribute's value: one of number, text, numbers and texts; all absent for types that no
/// known attribute has. Signed numbers as two's complement.
struct AttributeValue {
  std::optional<std::uint64_t> number;
  std::optional<std::string_view> text;
  std::optional<std::vector<std::uint64_t>> numbers;
  std::vector<std::string> texts;
};

/// What bubblesim added to a node that it wrote.
struct OwnFields {
  enum class What : std::uint8_t { kNone, kDeviceOp, kHostCall, kMarker, kStall };
  What what = What::kNone;
  std::uint8_t kind = 0;  ///< DeviceOpKind, HostCallKind; of markers and stalls as named below
  std::uint8_t sort = 0;  ///< MarkerKind, StallKind
  CopyDirection direction = CopyDirection::kNone;
  CollectiveKind collective = CollectiveKind::kUnknown;
  bool has_shape = false;
  bool has_sequence = false;
  bool sequence_recorded = false;
  std::optional<std::int64_t> start_ns, duration_ns;
  std::optional<std::uint32_t> stream, thread;  ///< indices into the file's tables
  std::uint64_t correlation = 0;
  std::uint64_t event = 0;
  std::uint64_t bytes = 0;
  std::uint64_t sequence = 0;
  std::int64_t number = -1;
  std::uint32_t group_size = 0;
  std::uint32_t place = 0;
  LaunchShape shape;
  std::optional<NameId> group;
  std::vector<std::uint32_t> peers;
  std::vector<std::uint64_t> inferred_edges;  ///< ids among data_deps, then indices
};

struct ChakraNode {
  std::uint64_t id = 0;
  NameId name{};
  std::int32_t type = kInvalidNode;
  bool on_cpu = false;
  bool involves_dims = false;          ///< "involved_dim" with a dimension left out
  std::vector<std::uint64_t> control;  ///< ids; once resolved, indices of nodes
  std::vector<std::uint64_t> data;     ///< the same
  std::optional<std::int64_t> start_ns;
  std::int64_t duration_ns = 0;
  std::optional<std::uint64_t> stream, tid;
  std::optional<std::int64_t> comm_type;
  std::uint64_t comm_size = 0;
  std::uint64_t tensor_size = 0;
  std::optional<std::uint32_t> source, destination;
  std::optional<NameId> group;
  std::uint32_t lane = kNone;  ///< index of the stream or thread that it runs on
  /// Number in the job, from 1 on, of the collective that the layout ended without some of its
  /// ranks; 0: none.
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

/// Puts an attribute of a node, or of the file's metadata, where it belongs; unknown ones are
/// passed over.
void apply_attribute(std::string_view name, const AttributeValue& value, ChakraNode& node,
                     File& file);
void apply_metadata(std::string_view name, const AttributeValue& value, File& file);

/// Reads the process groups that a metadata node's inputs declare.
void read_groups(std::string_view values, File& file);

/// Interns a name; bytes that are not UTF-8 are replaced and counted.
[[nodiscard]] NameId intern_name(std::string_view text, File& file);

/// Micros of the schema as nanoseconds; nothing beyond 73 years.
[[nodiscard]] std::optional<std::int64_t> micros_to_ns(std::uint64_t micros);

/// Times of this size and above are refused: 2^61 ns, 73 years.
inline constexpr std::int64_t kTimeLimit = std::int64_t{1} << 61U;

// Reads a Chakra file of either form: a stream of protobuf messages, each behind its length, or
// JSON text.

/// The protobuf stream from the window's anchor on; a longer message than `limit` ends it.
void read_stream(TextWindow& window, std::size_t limit, File& file);

/// JSON: the feeder's form, an object with "workload_graph", or the jsonizer's, one object a
/// message.
void read_json(TextWindow& window, File& file);

/// Does a JSON text begin as Chakra's do?
[[nodiscard]] bool is_chakra_json(std::string_view head);
/// Do bytes begin as a stream of GlobalMetadata and Nodes does?
[[nodiscard]] bool is_chakra_stream(std::string_view head);

// The protobuf form of Chakra traces: one message's bytes to what it says.

/// Reads Node messages, one after another, into the same memory.
class NodeMessageReader {
 public:
  NodeMessageReader();
  ~NodeMessageReader();
  NodeMessageReader(const NodeMessageReader&) = delete;
  NodeMessageReader& operator=(const NodeMessageReader&) = delete;

  /// Adds a message to `file`. False: the bytes are not one.
  [[nodiscard]] bool read(std::string_view bytes, File& file);

 private:
  std::unique_ptr<chakra_et::Node> message_;
};

/// Takes a GlobalMetadata message. False: the bytes are not one.
[[nodiscard]] bool read_metadata_message(std::string_view bytes, File& file);

}  // namespace bubblesim::traces::chakra
