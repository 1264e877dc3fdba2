#include "traces/import/chakra_graph.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <unordered_map>
#include <utility>

#include "traces/import/chakra_counters.hpp"

namespace bubblesim::traces::chakra {
namespace {

// Streams of device nodes that name none: what ASTRA-sim runs side by side.
constexpr std::uint64_t kComputeStream = 0;
constexpr std::uint64_t kCommStream = 1;
constexpr std::uint64_t kMemoryStream = 2;

using Index = std::unordered_map<std::uint64_t, std::uint32_t>;

Index index_nodes(File& file) {
  Index index;
  std::vector<Node> kept;
  kept.reserve(file.nodes.size());
  for (Node& node : file.nodes) {
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

std::uint64_t stream_of(const Node& node, CounterSet& counters) {
  if (node.stream) return *node.stream;
  if (node.tid) {
    counters.add(kStreamsFromTid);
    return *node.tid;
  }
  counters.add(kStreamsAssumed);
  if (node.is_comm()) return kCommStream;
  return node.type == kCompNode ? kComputeStream : kMemoryStream;
}

/// What a node may not start before, and who waits for it.
class Scheduler {
 public:
  explicit Scheduler(File& file)
      : file_(file), pending_(file.nodes.size(), 0), earliest_(file.nodes.size(), 0),
        order_(file.nodes.size(), 0), started_(file.nodes.size(), false),
        streams_(file.trace.streams.size(), 0), threads_(file.trace.threads.size(), 0) {}

  Result<std::vector<std::uint32_t>> run() {
    link();
    set_origin();
    for (std::uint32_t i = 0; i < pending_.size(); ++i) {
      if (pending_[i] == 0) offer(i);
    }
    while (placed_ < order_.size()) {
      if (ready_.empty()) break_cycle();
      const std::uint32_t node = ready_.top().second;
      ready_.pop();
      if (!place(node)) {
        return fail("the durations of its nodes add up to more than 73 years");
      }
    }
    count(file_.trace.counters, kCyclicDeps, cyclic_);
    return std::move(order_);
  }

 private:
  using Entry = std::pair<std::int64_t, std::uint32_t>;
  struct Follower {
    std::uint32_t node = 0;
    bool waits_for_end = false;  ///< by data; a callee waits for its caller's start only
  };

  void link() {
    std::vector<std::size_t> counts(file_.nodes.size() + 1, 0);
    for_each_dependency([&](std::uint32_t before, Follower after) {
      ++counts[before];
      ++pending_[after.node];
    });
    std::exclusive_scan(counts.begin(), counts.end(), counts.begin(), std::size_t{0});
    first_ = counts;
    followers_.resize(counts.back());
    for_each_dependency([&](std::uint32_t before, Follower after) {
      followers_[counts[before]++] = after;
    });
  }

  // Callers count only where no data dependency says when a node runs: converters turn the order of
  // calls into data dependencies, and their callers and data together have cycles.
  template <class Visit>
  void for_each_dependency(Visit visit) const {
    for (std::uint32_t i = 0; i < file_.nodes.size(); ++i) {
      for (const std::uint64_t id : file_.nodes[i].data) {
        visit(static_cast<std::uint32_t>(id), Follower{i, true});
      }
      if (!file_.nodes[i].data.empty()) continue;
      for (const std::uint64_t id : file_.nodes[i].control) {
        visit(static_cast<std::uint32_t>(id), Follower{i, false});
      }
    }
  }

  void set_origin() {
    std::optional<std::int64_t> first;
    for (const Node& node : file_.nodes) {
      if (node.start_ns) first = std::min(first.value_or(*node.start_ns), *node.start_ns);
    }
    std::fill(earliest_.begin(), earliest_.end(), first.value_or(0));
  }

  void offer(std::uint32_t node) {
    ready_.emplace(file_.nodes[node].start_ns.value_or(earliest_[node]), node);
  }

  /// Lets the first node of the file go that still waits.
  void break_cycle() {
    while (started_[oldest_] || pending_[oldest_] == 0) ++oldest_;
    cyclic_ += pending_[oldest_];
    pending_[oldest_] = 0;
    offer(oldest_);
  }

  std::int64_t* lane_of(const Node& node) {
    if (!node.is_known()) return nullptr;
    return node.on_device() ? &streams_[node.lane] : &threads_[node.lane];
  }

  bool place(std::uint32_t index) {
    Node& node = file_.nodes[index];
    std::int64_t* free = lane_of(node);
    std::int64_t start = earliest_[index];
    if (node.start_ns) {
      start = *node.start_ns;
    } else if (free != nullptr) {
      start = std::max(start, *free);
      file_.trace.counters.add(kStartsInferred);
    }
    const std::int64_t end = start + node.duration_ns;  // both below 2^61
    if (end >= kTimeLimit) return false;
    if (free != nullptr) *free = std::max(*free, end);
    node.start_ns = start;
    started_[index] = true;
    order_[index] = placed_++;
    release_followers(index, start, end);
    return true;
  }

  void release_followers(std::uint32_t index, std::int64_t start, std::int64_t end) {
    for (std::size_t i = first_[index]; i < first_[index + 1]; ++i) {
      const auto [follower, waits] = followers_[i];
      if (pending_[follower] == 0) continue;  // let go already, to break a cycle
      earliest_[follower] = std::max(earliest_[follower], waits ? end : start);
      if (--pending_[follower] == 0) offer(follower);
    }
  }

  File& file_;
  std::vector<std::uint32_t> pending_;  ///< dependencies that were not placed yet
  std::vector<std::int64_t> earliest_;
  std::vector<std::uint32_t> order_;
  std::vector<bool> started_;
  std::vector<std::int64_t> streams_, threads_;  ///< when each is free
  std::vector<std::size_t> first_;     ///< by node: of its followers
  std::vector<Follower> followers_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready_;
  std::uint64_t cyclic_ = 0;
  std::uint32_t placed_ = 0;
  std::uint32_t oldest_ = 0;
};

}  // namespace

void resolve_ids(File& file) {
  const Index index = index_nodes(file);
  std::uint64_t parents = 0;
  std::uint64_t callers = 0;
  for (Node& node : file.nodes) {
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
  for (Node& node : file.nodes) {
    const bool own = file.ours && node.own;
    if (node.on_device()) {
      node.lane = own && streams.has(node.own->stream)
                      ? *node.own->stream
                      : streams.at(stream_of(node, file.trace.counters));
    } else if (node.on_host() || (own && node.type == kMetadataNode)) {
      node.lane = own && threads.has(node.own->thread) ? *node.own->thread
                                                       : threads.at(node.tid.value_or(0));
    }
  }
}

Result<std::vector<std::uint32_t>> lay_out(File& file) {
  const bool recorded = std::all_of(file.nodes.begin(), file.nodes.end(), [](const Node& node) {
    return !node.is_known() || node.start_ns;
  });
  if (!recorded) return Scheduler(file).run();
  std::vector<std::uint32_t> order(file.nodes.size());
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

}  // namespace bubblesim::traces::chakra
