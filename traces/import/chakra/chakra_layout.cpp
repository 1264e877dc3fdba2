#include "traces/import/chakra/chakra_layout.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "traces/import/chakra/chakra_records.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::traces::chakra {
namespace {

/// Whom the collectives of a node meet: a group and a kind; of sends and receives, both ends.
using MeetingKey = std::tuple<std::string, CollectiveKind, std::uint32_t, std::uint32_t>;

/// Empty if the collective's start is recorded (so that it waits for no other rank), or if it is a
/// send or receive whose other end is not recorded.
std::optional<MeetingKey> meeting_key(const ChakraNode& node, const RankFile& rank) {
  const StringTable& names = rank.file->trace.names;
  if (node.start_ns) return std::nullopt;
  const CollectiveKind kind = *node.collective;
  const bool sends = kind == CollectiveKind::kSend;
  std::string group = node.group ? names[*node.group] : std::string();
  if (!sends && kind != CollectiveKind::kRecv) {
    if (!node.group) group = kWorldGroup;
    return MeetingKey{std::move(group), kind, kNone, kNone};
  }
  const auto other = sends ? node.destination : node.source;
  if (!other) return std::nullopt;
  return MeetingKey{std::move(group), CollectiveKind::kSend, sends ? rank.rank : *other,
                    sends ? *other : rank.rank};
}

struct Follower {
  std::uint32_t node = 0;
  bool waits_for_end = false;  ///< by data; a callee waits for its caller's start only
};

/// A stream or a thread.
struct Lane {
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  std::int64_t free_at = 0;
  bool busy = false;
};

/// One rank while it is laid out.
class RankLayout {
 public:
  explicit RankLayout(File& of_rank)
      : file(of_rank), pending(file.nodes.size(), 0), earliest(file.nodes.size(), 0),
        order(file.nodes.size(), 0), streams(file.trace.streams.size()),
        threads(file.trace.threads.size()), meeting(file.nodes.size(), kNone),
        recorded(file.nodes.size(), false) {
    link();
  }

  File& file;
  std::vector<std::uint32_t> pending;  ///< dependencies that are not met yet
  std::vector<std::int64_t> earliest;
  std::vector<std::uint32_t> order;
  std::vector<Lane> streams, threads;
  std::vector<std::uint32_t> meeting;  ///< by node: the line of meetings that it joins
  std::vector<bool> recorded;          ///< by node: its start is the file's own
  std::uint32_t started = 0;
  std::uint32_t waiting = 0;           ///< nodes that wait for other ranks
  std::uint32_t oldest = 0;            ///< no node before it has pending dependencies
  std::uint64_t cyclic = 0;
  std::uint64_t inferred = 0;          ///< starts

  [[nodiscard]] bool done() const { return started == order.size(); }
  [[nodiscard]] Lane* lane_of(const ChakraNode& node) {
    if (!node.is_known()) return nullptr;
    return node.on_device() ? &streams[node.lane] : &threads[node.lane];
  }
  [[nodiscard]] std::span<const Follower> followers_of(std::uint32_t node) const {
    return std::span(followers_).subspan(first_[node], first_[node + 1] - first_[node]);
  }

 private:
  // Callers count only where no data dependency says when a node runs: converters turn the order of
  // calls into data dependencies, and their callers and data together have cycles.
  template <class Visit>
  void for_each_dependency(Visit visit) const {
    for (std::uint32_t i = 0; i < file.nodes.size(); ++i) {
      const ChakraNode& node = file.nodes[i];
      for (const std::uint64_t id : node.data) {
        visit(static_cast<std::uint32_t>(id), Follower{i, true});
      }
      if (!node.data.empty()) continue;
      for (const std::uint64_t id : node.control) {
        visit(static_cast<std::uint32_t>(id), Follower{i, false});
      }
    }
  }

  void link() {
    std::vector<std::size_t> counts(file.nodes.size() + 1, 0);
    for_each_dependency([&](std::uint32_t before, Follower after) {
      ++counts[before];
      ++pending[after.node];
    });
    std::exclusive_scan(counts.begin(), counts.end(), counts.begin(), std::size_t{0});
    first_ = counts;
    followers_.resize(counts.back());
    for_each_dependency([&](std::uint32_t before, Follower after) {
      followers_[counts[before]++] = after;
    });
  }

  std::vector<std::size_t> first_;  ///< by node: of its followers
  std::vector<Follower> followers_;
};

struct Arrival {
  std::uint32_t rank = 0;
  std::uint32_t node = 0;
};

struct OpenMeeting {
  std::size_t expected = 0;  ///< ranks that have such a collective
  std::size_t arrived = 0;
  std::vector<Arrival> waiting;  ///< of those that arrived; a send does not wait
};

/// Collectives of one key, in order: the n-th of each rank meet.
struct MeetingLine {
  struct Member {
    std::uint32_t rank = 0;
    std::uint64_t uses = 0;     ///< collectives in its file
    std::uint64_t arrived = 0;  ///< of them, started
  };
  std::vector<Member> members;  ///< by rank
  std::map<std::uint64_t, OpenMeeting> open;  ///< by n: started, still waiting

  /// Ranks come in order.
  void add_use(std::uint32_t rank) {
    if (members.empty() || members.back().rank != rank) members.push_back({rank, 0, 0});
    ++members.back().uses;
  }
  /// The first meeting with a waiting member; a lone send does not wait.
  [[nodiscard]] std::map<std::uint64_t, OpenMeeting>::iterator first_waiting() {
    return std::ranges::find_if(
        open, [](const auto& entry) { return !entry.second.waiting.empty(); });
  }
  /// Which collective of its file the rank starts now: 0, 1, ...
  [[nodiscard]] std::uint64_t arrive(std::uint32_t rank) {
    return std::ranges::lower_bound(members, rank, {}, &Member::rank)->arrived++;
  }
  [[nodiscard]] std::size_t expected(std::uint64_t n) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(members, [n](const Member& member) { return member.uses > n; }));
  }
};

class JobLayout {
 public:
  explicit JobLayout(std::span<const RankFile> ranks) : files_(ranks) {
    for (const RankFile& rank : ranks) ranks_.emplace_back(*rank.file);
    find_meetings();
  }

  Result<std::vector<std::vector<std::uint32_t>>> run() {
    set_origin();
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::uint32_t i = 0; i < ranks_[rank].pending.size(); ++i) {
        if (ranks_[rank].pending[i] == 0) offer(rank, i);
      }
    }
    do {
      play();
    } while (!too_long_ && (open_a_cycle() || leave_a_meeting()));
    if (too_long_) return fail("the durations of its nodes add up to more than 73 years");
    return finish();
  }

 private:
  enum class What : std::uint8_t { kEnd, kLaneFree, kReady };
  struct Event {
    std::int64_t at = 0;
    What what = What::kEnd;
    std::uint32_t rank = 0;
    std::uint32_t node = 0;
    friend auto operator<=>(const Event&, const Event&) = default;
  };

  void find_meetings() {
    std::map<MeetingKey, std::uint32_t> lines;
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const File& file = *files_[rank].file;
      for (std::uint32_t i = 0; i < file.nodes.size(); ++i) {
        if (!file.nodes[i].collective) continue;
        const auto key = meeting_key(file.nodes[i], files_[rank]);
        if (!key) continue;
        const auto [place, fresh] =
            lines.try_emplace(*key, static_cast<std::uint32_t>(lines_.size()));
        if (fresh) lines_.emplace_back();
        ranks_[rank].meeting[i] = place->second;
        lines_[place->second].add_use(rank);
      }
    }
  }

  void set_origin() {
    std::optional<std::int64_t> first;
    for (const RankFile& rank : files_) {
      for (const ChakraNode& node : rank.file->nodes) {
        if (node.start_ns) first = std::min(first.value_or(*node.start_ns), *node.start_ns);
      }
    }
    for (RankLayout& rank : ranks_) {
      std::fill(rank.earliest.begin(), rank.earliest.end(), first.value_or(0));
    }
  }

  void play() {
    std::vector<std::pair<std::uint32_t, Lane*>> touched;
    while (!events_.empty() && !too_long_) {
      const std::int64_t now = events_.top().at;
      last_ = std::max(last_, now);
      touched.clear();
      while (!events_.empty() && events_.top().at == now) {
        const Event event = events_.top();
        events_.pop();
        if (Lane* lane = handle(event); lane != nullptr) touched.emplace_back(event.rank, lane);
      }
      for (const auto& [rank, lane] : touched) start_next(rank, *lane, now);
    }
  }

  /// The lane on which something may start now.
  Lane* handle(const Event& event) {
    RankLayout& rank = ranks_[event.rank];
    const ChakraNode& node = rank.file.nodes[event.node];
    Lane* lane = rank.lane_of(node);
    switch (event.what) {
      case What::kEnd:
        release(event.rank, event.node, event.at, true);
        if (lane != nullptr && !rank.recorded[event.node]) lane->busy = false;
        return lane;
      case What::kLaneFree: return lane;
      case What::kReady: break;
    }
    if (node.start_ns) {
      keep_recorded(event.rank, event.node);
    } else if (lane == nullptr) {
      start(event.rank, event.node, event.at);
    } else {
      lane->ready.push(event.node);
    }
    return lane;
  }

  void keep_recorded(std::uint32_t rank, std::uint32_t index) {
    RankLayout& layout = ranks_[rank];
    const ChakraNode& node = layout.file.nodes[index];
    layout.recorded[index] = true;
    const std::int64_t end = *node.start_ns + node.duration_ns;
    if (Lane* lane = layout.lane_of(node)) lane->free_at = std::max(lane->free_at, end);
    note_start(rank, index, *node.start_ns);
    end_at(rank, index, end);
  }

  void start_next(std::uint32_t rank, Lane& lane, std::int64_t now) {
    if (lane.busy || lane.ready.empty()) return;
    const std::uint32_t node = lane.ready.top();
    if (lane.free_at > now) {
      events_.push({lane.free_at, What::kLaneFree, rank, node});
      return;
    }
    lane.ready.pop();
    lane.busy = true;
    start(rank, node, now);
    ++ranks_[rank].inferred;
  }

  void start(std::uint32_t rank, std::uint32_t index, std::int64_t now) {
    RankLayout& layout = ranks_[rank];
    ChakraNode& node = layout.file.nodes[index];
    node.start_ns = now;
    note_start(rank, index, now);
    if (layout.meeting[index] == kNone) {
      end_at(rank, index, now + node.duration_ns);  // both below 2^61
    } else {
      arrive(rank, index, now);
    }
  }

  void note_start(std::uint32_t rank, std::uint32_t index, std::int64_t at) {
    RankLayout& layout = ranks_[rank];
    layout.order[index] = layout.started++;
    layout.pending[index] = 0;
    release(rank, index, at, false);
  }

  void arrive(std::uint32_t rank, std::uint32_t index, std::int64_t now) {
    MeetingLine& line = lines_[ranks_[rank].meeting[index]];
    const std::uint64_t n = line.arrive(rank);
    OpenMeeting& here = line.open[n];
    if (here.arrived++ == 0) here.expected = line.expected(n);
    const ChakraNode& node = ranks_[rank].file.nodes[index];
    if (node.collective == CollectiveKind::kSend) {
      end_at(rank, index, now + node.duration_ns);
    } else {
      here.waiting.push_back({rank, index});
      ++ranks_[rank].waiting;
    }
    if (here.arrived < here.expected) return;
    if (here.expected == 1 && ranks_.size() > 1) {
      ranks_[rank].file.trace.counters.add(kNotJoined);
    }
    meet(line, n, now);
  }

  void meet(MeetingLine& line, std::uint64_t n, std::int64_t now) {
    for (const Arrival& arrival : line.open[n].waiting) {
      ChakraNode& node = ranks_[arrival.rank].file.nodes[arrival.node];
      const std::int64_t end = now + node.duration_ns;
      node.duration_ns = end - *node.start_ns;
      --ranks_[arrival.rank].waiting;
      end_at(arrival.rank, arrival.node, end);
    }
    line.open.erase(n);
  }

  void end_at(std::uint32_t rank, std::uint32_t node, std::int64_t end) {
    too_long_ = too_long_ || end >= kTimeLimit;
    events_.push({end, What::kEnd, rank, node});
  }

  void release(std::uint32_t rank, std::uint32_t index, std::int64_t at, bool ended) {
    RankLayout& layout = ranks_[rank];
    for (const Follower& follower : layout.followers_of(index)) {
      if (follower.waits_for_end != ended) continue;
      if (layout.pending[follower.node] == 0) continue;  // let go already, to open a cycle
      layout.earliest[follower.node] = std::max(layout.earliest[follower.node], at);
      if (--layout.pending[follower.node] == 0) offer(rank, follower.node);
    }
  }

  void offer(std::uint32_t rank, std::uint32_t node) {
    events_.push({ranks_[rank].earliest[node], What::kReady, rank, node});
  }

  /// Lets the node of the least id go, on a rank where nothing runs and nothing waits for others.
  bool open_a_cycle() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      RankLayout& layout = ranks_[rank];
      if (layout.done() || layout.waiting > 0) continue;
      while (layout.oldest < layout.pending.size() && layout.pending[layout.oldest] == 0) {
        ++layout.oldest;
      }
      if (layout.oldest == layout.pending.size()) continue;
      layout.cyclic += layout.pending[layout.oldest];
      layout.pending[layout.oldest] = 0;
      offer(rank, layout.oldest);
      return true;
    }
    return false;
  }

  /// Ends the collective that has waited longest without those that are missing.
  bool leave_a_meeting() {
    MeetingLine* oldest = nullptr;
    std::uint64_t oldest_n = 0;
    std::int64_t since = kTimeLimit;
    for (MeetingLine& line : lines_) {
      const auto open = line.first_waiting();
      if (open == line.open.end()) continue;
      const Arrival& first = open->second.waiting.front();
      const std::int64_t start = *ranks_[first.rank].file.nodes[first.node].start_ns;
      if (start >= since) continue;
      since = start;
      oldest = &line;
      oldest_n = open->first;
    }
    if (oldest == nullptr) return false;
    ++left_;
    for (const Arrival& arrival : oldest->open[oldest_n].waiting) {
      File& file = ranks_[arrival.rank].file;
      file.trace.counters.add(kNotJoined);
      file.nodes[arrival.node].left_meeting = left_;
    }
    meet(*oldest, oldest_n, last_);
    return true;
  }

  std::vector<std::vector<std::uint32_t>> finish() {
    std::vector<std::vector<std::uint32_t>> orders;
    for (RankLayout& rank : ranks_) {
      rank.file.trace.counters.add(kCyclicDeps, rank.cyclic);
      rank.file.trace.counters.add(kStartsInferred, rank.inferred);
      orders.push_back(std::move(rank.order));
    }
    return orders;
  }

  std::span<const RankFile> files_;
  std::vector<RankLayout> ranks_;
  std::vector<MeetingLine> lines_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t last_ = 0;
  std::uint32_t left_ = 0;  ///< meetings that ended without ranks that are missing
  bool too_long_ = false;
};

/// Most of a file's device nodes lack a start.
bool is_mostly_inferred(const File& file) {
  std::size_t device = 0;
  std::size_t startless = 0;
  for (const ChakraNode& node : file.nodes) {
    device += node.on_device() ? 1 : 0;
    startless += node.on_device() && !node.start_ns ? 1 : 0;
  }
  return 2 * startless > device;
}

}  // namespace

bool lacks_starts(const File& file) {
  return std::ranges::any_of(
      file.nodes, [](const ChakraNode& node) { return node.is_known() && !node.start_ns; });
}

Result<std::vector<std::vector<std::uint32_t>>> lay_out(std::span<const RankFile> ranks) {
  for (const RankFile& rank : ranks) {
    if (is_mostly_inferred(*rank.file)) rank.file->trace.counters.add(kLayoutInferred);
  }
  return JobLayout(ranks).run();
}

}  // namespace bubblesim::traces::chakra
