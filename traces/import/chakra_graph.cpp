#include "traces/import/chakra_graph.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "traces/import/chakra_counters.hpp"

namespace bubblesim::traces::chakra {
namespace {

// What ASTRA-sim runs side by side.
constexpr std::uint64_t kComputeStream = 0;
constexpr std::uint64_t kCommStream = 1;
constexpr std::uint64_t kMemoryStream = 2;

using Index = std::unordered_map<std::uint64_t, std::uint32_t>;

Index index_nodes(File& file) {
  // Ids are the order of the program; that of the file says nothing.
  std::stable_sort(file.nodes.begin(), file.nodes.end(),
                   [](const ChakraNode& a, const ChakraNode& b) { return a.id < b.id; });
  Index index;
  std::vector<ChakraNode> kept;
  kept.reserve(file.nodes.size());
  for (ChakraNode& node : file.nodes) {
    if (!index.try_emplace(node.id, static_cast<std::uint32_t>(kept.size())).second) {
      file.trace.counters.add(kDuplicateIds);
      continue;
    }
    kept.push_back(std::move(node));
  }
  file.nodes = std::move(kept);
  return index;
}

/// Returns how many ids no node has.
std::uint64_t resolve(std::vector<std::uint64_t>& ids, const Index& index) {
  const std::size_t before = ids.size();
  std::size_t kept = 0;
  for (const std::uint64_t id : ids) {
    const auto found = index.find(id);
    if (found != index.end()) ids[kept++] = found->second;
  }
  ids.resize(kept);
  return before - kept;
}

void count(CounterSet& counters, const CounterSpec& spec, std::uint64_t number) {
  if (number > 0) counters.add(spec, number);
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
  const Index index = index_nodes(file);
  std::uint64_t parents = 0;
  std::uint64_t callers = 0;
  for (ChakraNode& node : file.nodes) {
    parents += resolve(node.data, index);
    callers += resolve(node.control, index);
    if (!node.own) continue;
    auto& inferred = node.own->inferred_edges;
    resolve(inferred, index);
    std::sort(inferred.begin(), inferred.end());
  }
  count(file.trace.counters, kMissingParents, parents);
  count(file.trace.counters, kMissingCallers, callers);
}

void assign_lanes(File& file) {
  Rows<Stream> streams(file.trace.streams);
  Rows<HostThread> threads(file.trace.threads);
  AssumedStreams assumed;
  for (ChakraNode& node : file.nodes) {
    const bool own = file.ours && node.own;
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
