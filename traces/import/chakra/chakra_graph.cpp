#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "traces/import/chakra/chakra_layout.hpp"
#include "traces/import/chakra/chakra_node.hpp"
#include "traces/import/chakra/chakra_records.hpp"
#include "traces/meeting_key.hpp"
#include "traces/names/collective_names.hpp"

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

// Keeps the first of nodes with one id.
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
    const std::uint64_t without_gaps = ids_.empty() ? 0 : id - ids_.front();
    if (without_gaps < ids_.size() && ids_[without_gaps] == id) {
      return static_cast<std::uint32_t>(without_gaps);
    }
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

/// Streams of device nodes. Nodes that name none: one for computation, one for memory, and for
/// communication one a group and one a direction and peer, as frameworks have them: what waits for
/// one peer does not hold up what goes to another.
class StreamsOfNodes {
 public:
  std::uint64_t stream(const ChakraNode& node) {
    if (node.stream) return *node.stream;
    if (node.tid) {
      ++from_tid;
      return *node.tid;
    }
    ++assumed;
    return assumed_stream(node);
  }

  std::uint64_t from_tid = 0;
  std::uint64_t assumed = 0;

 private:
  std::uint64_t assumed_stream(const ChakraNode& node) {
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

  using Key = std::tuple<NameId, std::int32_t, std::uint32_t>;
  std::map<Key, std::uint64_t> streams_;
};

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
  StreamsOfNodes of_nodes;
  for (ChakraNode& node : file.nodes) {
    const bool own = file.native && node.own;
    if (node.on_device()) {
      node.lane = own && streams.has(node.own->stream)
                      ? *node.own->stream
                      : streams.at(of_nodes.stream(node));
    } else if (node.on_host() || (own && node.type == kMetadataNode)) {
      node.lane = own && threads.has(node.own->thread) ? *node.own->thread
                                                       : threads.at(node.tid.value_or(0));
    }
  }
  file.trace.counters.add(kStreamsFromTid, of_nodes.from_tid);
  file.trace.counters.add(kStreamsAssumed, of_nodes.assumed);
}

namespace {

CollectiveKind kind_of(const ChakraNode& node, std::string_view name) {
  if (node.type == kCommSendNode) return CollectiveKind::kSend;
  if (node.type == kCommRecvNode) return CollectiveKind::kRecv;
  if (node.comm_type) return kind_of_comm_type(*node.comm_type);
  return kind_of_kernel(name);
}

}  // namespace

void find_collectives(File& file) {
  const StringTable& names = file.trace.names;
  std::vector<bool> communicates;  // by name: names are few, nodes many
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    communicates.push_back(is_communication_kernel(names[NameId{i}]));
  }
  for (ChakraNode& node : file.nodes) {
    if (!node.on_device() || !(node.is_comm() || communicates[node.name.index()])) continue;
    node.collective = kind_of(node, names[node.name]);
  }
}

namespace {

using Ranks = std::vector<std::uint32_t>;

class JobTimes {
 public:
  JobTimes(std::span<const RankFile> ranks, std::uint32_t world, const CollectiveTimes& times)
      : files_(ranks), times_(times), everybody_(world) {
    std::iota(everybody_.begin(), everybody_.end(), 0U);
  }

  Result<void> run() {
    find_groups();
    for (const RankFile& rank : files_) {
      for (ChakraNode& node : rank.file->nodes) {
        if (!node.collective || node.duration_ns != 0) continue;
        BUBBLESIM_RETURN_IF_ERROR(give_time(node, rank));
      }
    }
    return {};
  }

 private:
  void find_groups() {
    std::map<std::string, std::set<std::uint32_t>> declared, used;
    for (const RankFile& rank : files_) {
      const StringTable& names = rank.file->trace.names;
      for (const ChakraGroup& group : rank.file->groups) {
        declared[names[group.name]].insert(group.ranks.begin(), group.ranks.end());
      }
      for (const ChakraNode& node : rank.file->nodes) {
        if (node.group && node.on_device()) used[names[*node.group]].insert(rank.rank);
      }
    }
    for (auto& [name, ranks] : used) {
      const std::set<std::uint32_t>& all = declared[name].empty() ? ranks : declared[name];
      members_[name] = Ranks(all.begin(), all.end());
    }
  }

  /// Empty: not known.
  Ranks ends_of(const ChakraNode& node, CollectiveKind kind, std::uint32_t rank) const {
    const bool sends = kind == CollectiveKind::kSend;
    const auto other = sends ? node.destination : node.source;
    if (!other || *other == rank) return {};
    return sends ? Ranks{rank, *other} : Ranks{*other, rank};
  }

  std::span<const std::uint32_t> members_of(const ChakraNode& node, const File& file) const {
    if (node.group) return members_.at(file.trace.names[*node.group]);
    if (node.involves_dims) return {};
    return everybody_;
  }

  Result<void> give_time(ChakraNode& node, const RankFile& rank) {
    CounterSet& counters = rank.file->trace.counters;
    UntimedCollective untimed{*node.collective, node.comm_size, members_of(node, *rank.file),
                              static_cast<std::uint32_t>(everybody_.size())};
    const Ranks ends = ends_of(node, untimed.kind, rank.rank);
    if (is_one_end(untimed.kind)) untimed.ranks = ends;
    if (node.group && untimed.ranks.size() == 1) return {};  // a group of one moves nothing
    const auto duration = time_of(untimed);
    if (!duration) return tl::unexpected<Error>(duration.error());
    node.duration_ns = to_ns(*duration);
    counters.add(node.duration_ns > 0 ? kCollectivesSimulated : kCollectivesUntimed);
    return {};
  }

  Result<Duration> time_of(const UntimedCollective& untimed) const {
    const bool known = untimed.ranks.size() > 1 &&
                       std::ranges::max(untimed.ranks) < everybody_.size();
    if (!times_ || !known) return Duration{};
    return times_(untimed);
  }

  std::span<const RankFile> files_;
  const CollectiveTimes& times_;
  Ranks everybody_;
  std::map<std::string, Ranks> members_;  ///< by the group's name
};

}  // namespace

Result<void> time_collectives(std::span<const RankFile> ranks, std::uint32_t world,
                              const CollectiveTimes& times) {
  return JobTimes(ranks, world, times).run();
}

}  // namespace bubblesim::traces::chakra
