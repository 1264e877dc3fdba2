// The forward list simulation behind `play`: hosts run until they must wait for the device, then
// every device operation whose predecessors are timed is timed, and so on until all is done.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "sim/base/check.hpp"
#include "tests/samples/timeline.hpp"

namespace bubblesim::traces {
namespace {

constexpr Duration kLaunchLatency{2200};  // from the end of the call to the earliest start
constexpr Duration kSyncReturn{3000};     // from the last operation's end to the call's return
constexpr Duration kStreamGap{900};       // between two operations of one stream

struct PlayedOp {
  DeviceOp op;
  TraceTime earliest{};             ///< launched, as far as the host goes
  std::vector<std::size_t> after;   ///< operations of this rank that must have ended
  bool started = false;
  bool ended = false;
};

/// One rank while it is played.
class RankPlayer {
 public:
  RankPlayer(RankScript&& script, TraceTime origin)
      : script_(std::move(script)), clock_(origin),
        queued_(script_.trace().streams.size()), head_(queued_.size(), 0),
        waits_(queued_.size()) {}

  /// Runs the host until it blocks or is done; true if it did anything.
  bool run_host() {
    const std::size_t before = next_;
    while (!done() && run_step(script_.steps()[next_])) ++next_;
    return next_ != before;
  }
  /// Starts what can start; fills `started` with the operations that are collectives.
  bool run_device(std::vector<std::size_t>& started) {
    bool moved = false;
    for (std::size_t stream = 0; stream < queued_.size(); ++stream) {
      const std::vector<std::size_t>& queue = queued_[stream];
      std::size_t& head = head_[stream];
      while (head < queue.size() && ops_[queue[head]].ended) ++head;
      if (head == queue.size() || !ready(queue[head])) continue;
      PlayedOp& played = ops_[queue[head]];
      TraceTime start = played.earliest;
      if (head > 0) start = std::max(start, ops_[queue[head - 1]].op.end() + kStreamGap);
      for (const std::size_t other : played.after)
        start = std::max(start, ops_[other].op.end() + kStreamGap);
      played.op.start = start;
      played.started = true;
      moved = true;
      if (played.op.kind == DeviceOpKind::kCollective)
        started.push_back(queue[head]);
      else
        played.ended = true;
    }
    return moved;
  }
  [[nodiscard]] bool done() const { return next_ == script_.steps().size(); }
  [[nodiscard]] bool idle() const {
    return std::all_of(ops_.begin(), ops_.end(), [](const PlayedOp& o) { return o.ended; });
  }

  [[nodiscard]] PlayedOp& op(std::size_t index) { return ops_[index]; }
  [[nodiscard]] const Collective& collective_of(const PlayedOp& played) {
    return script_.trace().collectives[played.op.collective];
  }
  [[nodiscard]] const std::string& text(NameId id) { return script_.trace().names[id]; }
  /// The finished trace, its records in order of time.
  [[nodiscard]] RankTrace take() {
    std::vector<std::size_t> order(ops_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
      return ops_[a].op.start < ops_[b].op.start;
    });
    std::vector<std::uint32_t> place(ops_.size());
    RankTrace trace = std::move(script_.trace());
    for (const std::size_t index : order) {
      place[index] = static_cast<std::uint32_t>(trace.device_ops.size());
      trace.device_ops.push_back(ops_[index].op);
    }
    for (const std::size_t index : order)
      for (const std::size_t before : ops_[index].after)
        trace.edges.push_back({DeviceOpId{place[before]}, DeviceOpId{place[index]}, false});
    return trace;
  }

 private:
  bool run_step(const ScriptStep& step) {
    RankTrace& trace = script_.trace();
    switch (step.kind) {
      case ScriptStep::Kind::kThink:
        clock_ += step.host;
        break;
      case ScriptStep::Kind::kOp:
        enqueue(step);
        break;
      case ScriptStep::Kind::kRecord:
        if (!queued_[step.stream].empty()) events_[step.event] = queued_[step.stream].back();
        add_call(step, HostCallKind::kEventRecord, step.host);
        break;
      case ScriptStep::Kind::kWait:
        if (const auto found = events_.find(step.event); found != events_.end())
          waits_[step.stream].push_back(found->second);
        add_call(step, HostCallKind::kStreamWaitEvent, step.host);
        break;
      case ScriptStep::Kind::kStreamSync:
        return synchronise(step);
      case ScriptStep::Kind::kBegin:
        open_markers_.push_back(trace.markers.size());
        trace.markers.push_back(step.marker);
        trace.markers.back().start = clock_;
        break;
      case ScriptStep::Kind::kEnd: {
        Marker& marker = trace.markers[open_markers_.back()];
        marker.duration = clock_ - marker.start;
        open_markers_.pop_back();
        break;
      }
      case ScriptStep::Kind::kMemory:
        trace.memory.push_back(step.memory);
        trace.memory.back().at = clock_;
        break;
    }
    return true;
  }
  void enqueue(const ScriptStep& step) {
    const bool copy = step.op.kind == DeviceOpKind::kCopy;
    add_call(step, copy ? HostCallKind::kCopy : HostCallKind::kLaunchKernel, step.host);
    PlayedOp played;
    played.op = step.op;
    played.op.correlation = correlation_;
    played.op.stream = StreamId{step.stream};
    played.op.launch = static_cast<std::uint32_t>(script_.trace().host_calls.size() - 1);
    played.earliest = clock_ + kLaunchLatency;
    played.after = std::exchange(waits_[step.stream], {});
    queued_[step.stream].push_back(ops_.size());
    ops_.push_back(std::move(played));
  }
  void add_call(const ScriptStep& step, HostCallKind kind, Duration duration) {
    HostCall call;
    call.start = clock_;
    call.duration = duration;
    call.correlation = ++correlation_;
    call.name = step.call;
    call.kind = kind;
    call.stream = step.stream;
    call.event = step.event;
    script_.trace().host_calls.push_back(call);
    clock_ += duration;
  }
  bool synchronise(const ScriptStep& step) {
    TraceTime back = clock_ + step.host;
    const std::vector<std::size_t>& queue = queued_[step.stream];
    if (!queue.empty()) {
      const PlayedOp& last = ops_[queue.back()];
      if (!last.ended) return false;
      back = std::max(back, last.op.end() + kSyncReturn);
    }
    add_call(step, HostCallKind::kStreamSync, back - clock_);
    return true;
  }
  [[nodiscard]] bool ready(std::size_t index) const {
    const PlayedOp& played = ops_[index];
    return !played.started && std::all_of(played.after.begin(), played.after.end(),
                                          [this](std::size_t other) { return ops_[other].ended; });
  }

  RankScript script_;
  std::size_t next_ = 0;
  TraceTime clock_;
  std::uint64_t correlation_ = 100;
  std::vector<PlayedOp> ops_;
  std::vector<std::vector<std::size_t>> queued_;  ///< operations by stream, in launch order
  std::vector<std::size_t> head_;                 ///< first of each stream that has not ended
  std::vector<std::vector<std::size_t>> waits_;   ///< what the stream's next operation awaits
  std::map<std::uint64_t, std::size_t> events_;   ///< event to the operation it marks
  std::vector<std::size_t> open_markers_;
};

/// The members of a collective or transfer that have started, by group and sequence number.
using Meetings = std::map<std::pair<std::string, std::uint64_t>,
                          std::vector<std::pair<std::size_t, std::size_t>>>;

/// Lets a collective end on all members once the last of them has started.
void meet(std::vector<RankPlayer>& ranks, Meetings& meetings, std::size_t rank, std::size_t index) {
  const Collective& what = ranks[rank].collective_of(ranks[rank].op(index));
  auto& members = meetings[{ranks[rank].text(what.group), what.sequence}];
  members.emplace_back(rank, index);
  if (members.size() < what.group_size) return;
  TraceTime last = TraceTime::min();
  for (const auto& [r, i] : members) last = std::max(last, ranks[r].op(i).op.start);
  for (const auto& [r, i] : members) {
    PlayedOp& played = ranks[r].op(i);
    played.op.duration += last - played.op.start;
    played.ended = true;
  }
}

}  // namespace

JobTrace play(std::vector<RankScript>&& scripts, TraceTime origin) {
  std::vector<RankPlayer> ranks;
  ranks.reserve(scripts.size());
  for (RankScript& script : scripts) ranks.emplace_back(std::move(script), origin);
  Meetings meetings;
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      moved = ranks[rank].run_host() || moved;
      std::vector<std::size_t> started;
      while (ranks[rank].run_device(started)) moved = true;
      for (const std::size_t index : started) meet(ranks, meetings, rank, index);
    }
  }
  JobTrace job;
  for (RankPlayer& rank : ranks) {
    BUBBLESIM_CHECK(rank.done() && rank.idle(), "the scripts of a sample deadlock");
    job.ranks.push_back(rank.take());
  }
  return job;
}

}  // namespace bubblesim::traces
