#include "traces/import/chakra_records.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "traces/import/chakra_node.hpp"

namespace bubblesim::traces::chakra {
namespace {

// What ASTRA-sim runs side by side.
constexpr std::uint64_t kComputeStream = 0;
constexpr std::uint64_t kCommStream = 1;
constexpr std::uint64_t kMemoryStream = 2;

using Index = std::unordered_map<std::uint64_t, std::uint32_t>;

// Ids are the order of the program; that of the file says nothing.
void sort_nodes(std::vector<ChakraNode>& nodes) {
  if (std::ranges::is_sorted(nodes, {}, &ChakraNode::id)) return;
  std::ranges::stable_sort(nodes, {}, &ChakraNode::id);
}

// Of nodes with one id, the first stays.
void drop_duplicates(File& file) {
  const auto rest = std::ranges::unique(file.nodes, {}, &ChakraNode::id);
  if (rest.empty()) return;
  file.trace.counters.add(kDuplicateIds, rest.size());
  file.nodes.erase(rest.begin(), rest.end());
}

/// Where the node of an id is, among nodes sorted by id.
class Places {
 public:
  explicit Places(const std::vector<ChakraNode>& nodes) {
    ids_.reserve(nodes.size());
    for (const ChakraNode& node : nodes) ids_.push_back(node.id);
  }
  [[nodiscard]] std::optional<std::uint32_t> place_of(std::uint64_t id) const {
    const auto found = std::ranges::lower_bound(ids_, id);
    if (found == ids_.end() || *found != id) return std::nullopt;
    return static_cast<std::uint32_t>(found - ids_.begin());
  }

 private:
  std::vector<std::uint64_t> ids_;
};

/// Returns how many ids no node has.
std::uint64_t resolve(std::vector<std::uint64_t>& ids, const Places& places) {
  const std::size_t before = ids.size();
  std::size_t kept = 0;
  for (const std::uint64_t id : ids) {
    if (const auto place = places.place_of(id)) ids[kept++] = *place;
  }
  ids.resize(kept);
  return before - kept;
}

/// The index of the row with this system id, added where there is none.
template <class Row>
class Rows {
 public:
  explicit Rows(std::vector<Row>& rows) : rows_(rows) {
    for (std::uint32_t i = 0; i < rows.size(); ++i) index_.try_emplace(rows[i].system_id, i);
  }
  std::uint32_t at(std::uint64_t system_id) {
    const auto [place, fresh] =
        index_.try_emplace(system_id, static_cast<std::uint32_t>(rows_.size()));
    if (fresh) {
      rows_.emplace_back();
      rows_.back().system_id = system_id;
    }
    return place->second;
  }
  [[nodiscard]] bool has(const std::optional<std::uint32_t>& row) const {
    return row && *row < rows_.size();
  }

 private:
  std::vector<Row>& rows_;
  Index index_;
};

/// Streams of device nodes that name none: one for computation, one for memory, and for
/// communication one a group and one a direction and peer, as frameworks have them: what waits for
/// one peer does not hold up what goes to another.
class AssumedStreams {
 public:
  std::uint64_t stream(const ChakraNode& node) {
    if (!node.is_comm()) return node.type == kCompNode ? kComputeStream : kMemoryStream;
    const bool sends = node.type == kCommSendNode;
    const bool pair = sends || node.type == kCommRecvNode;
    const auto peer = sends ? node.destination : node.source;
    const Key key{node.group.value_or(NameId{}), pair ? node.type : std::int32_t{kCommCollNode},
                  pair ? peer.value_or(kNone) : kNone};
    // 1, then 3, 4, ...
    const std::uint64_t next = streams_.empty() ? kCommStream : kMemoryStream + streams_.size();
    return streams_.try_emplace(key, next).first->second;
  }

 private:
  using Key = std::tuple<NameId, std::int32_t, std::uint32_t>;
  std::map<Key, std::uint64_t> streams_;
};

std::uint64_t stream_of(const ChakraNode& node, AssumedStreams& assumed, CounterSet& counters) {
  if (node.stream) return *node.stream;
  if (node.tid) {
    counters.add(kStreamsFromTid);
    return *node.tid;
  }
  counters.add(kStreamsAssumed);
  return assumed.stream(node);
}

}  // namespace

void resolve_ids(File& file) {
  sort_nodes(file.nodes);
  drop_duplicates(file);
  const Places places(file.nodes);
  std::uint64_t parents = 0;
  std::uint64_t callers = 0;
  for (ChakraNode& node : file.nodes) {
    parents += resolve(node.data, places);
    callers += resolve(node.control, places);
    if (!node.own) continue;
    auto& inferred = node.own->inferred_edges;
    resolve(inferred, places);
    std::sort(inferred.begin(), inferred.end());
  }
  file.trace.counters.add(kMissingParents, parents);
  file.trace.counters.add(kMissingCallers, callers);
}

void assign_lanes(File& file) {
  Rows<Stream> streams(file.trace.streams);
  Rows<HostThread> threads(file.trace.threads);
  AssumedStreams assumed;
  for (ChakraNode& node : file.nodes) {
    const bool own = file.native && node.own;
    if (node.on_device()) {
      node.lane = own && streams.has(node.own->stream)
                      ? *node.own->stream
                      : streams.at(stream_of(node, assumed, file.trace.counters));
    } else if (node.on_host() || (own && node.type == kMetadataNode)) {
      node.lane = own && threads.has(node.own->thread) ? *node.own->thread
                                                       : threads.at(node.tid.value_or(0));
    }
  }
}

}  // namespace bubblesim::traces::chakra
