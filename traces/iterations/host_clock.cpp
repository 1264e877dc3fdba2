#include "traces/iterations/host_clock.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/base/nearest_rank.hpp"
#include "traces/names/host_call_names.hpp"
#include "traces/sort_records.hpp"

namespace bubblesim::traces {
namespace {

// Profilers turn one clock's times into the other's with an error of microseconds. A launch begins
// before its operation does: the host's clock is ahead by at least what the launch begins after it.
// A wait, and a copy that blocks, returns when what it waited for has ended: the clock is ahead by
// at most what it returns after that. The offset nearest to zero within both bounds is taken.
// Measured: 17 to 46 us ahead on some ranks of TorchRec's V100 jobs, where most operations start
// before their launches; 5 to 7 us behind in recordings whose waits return before their last
// operation's end.

constexpr Duration kMostOffset = std::chrono::microseconds(200);
constexpr std::size_t kPercentEarly = 5;

/// A few operations that start before their launches are faults of their own, not the clock's.
class ClockBounds {
 public:
  void add_launch(Duration lead) {
    ++launches_;
    near_ += lead >= -kMostOffset ? 1 : 0;
    if (lead <= Duration{}) {
      at_least_ = std::max(at_least_, lead);
    } else if (lead <= kMostOffset) {
      ++early_;
      most_early_ = std::max(most_early_, lead);
    }
  }
  void add_wait(Duration slack) {
    at_most_ = std::min(at_most_, slack);
    if (slack < Duration{}) slacks_.push_back(slack);
  }
  [[nodiscard]] Duration offset() const {
    if (100 * early_ > kPercentEarly * launches_) return most_early_;
    // Operations that queued say nothing; of the others more are needed, and what waits allow.
    if (100 * early_ > kPercentEarly * near_ && most_early_ <= at_most_) return most_early_;
    Duration offset{};
    for (const Duration slack : slacks_) {
      if (slack >= at_least_) offset = std::min(offset, slack);
    }
    return offset;
  }

 private:
  std::size_t launches_ = 0;
  std::size_t near_ = 0;  ///< whose operations start within kMostOffset
  std::size_t early_ = 0;
  Duration most_early_{};
  Duration at_least_ = -kMostOffset;
  Duration at_most_ = Duration::max();
  std::vector<Duration> slacks_;  ///< of the waits that return before the end
};

/// What each stream ran last and each event stands for, as calls are walked in order.
class LastEnds {
 public:
  explicit LastEnds(const RankTrace& trace)
      : trace_(trace), by_launch_(ops_by_launch(trace)), ends_(trace.streams.size()) {}

  void pass(std::uint32_t index) {
    const HostCall& call = trace_.host_calls[index];
    for (; next_ < by_launch_.size(); ++next_) {
      const DeviceOp& op = trace_.device_ops[by_launch_[next_]];
      if (op.launch > index) break;
      ends_[op.stream.index()] = op.end();
    }
    if (call.kind == HostCallKind::kEventRecord && call.event != 0 && call.stream < ends_.size()) {
      events_[call.event] = ends_[call.stream];
    }
  }

  /// The end of what the call is known to have waited for.
  [[nodiscard]] std::optional<TraceTime> awaited_by(const HostCall& call) const {
    using enum HostCallKind;
    if (call.kind == kDeviceSync || call.kind == kFree) return *std::ranges::max_element(ends_);
    if (call.kind == kEventSync) {
      const auto found = events_.find(call.event);
      return found == events_.end() ? only_pending(call.start) : found->second;
    }
    if (call.kind != kStreamSync) return std::nullopt;
    return call.stream < ends_.size() ? ends_[call.stream] : only_pending(call.start);
  }

  /// Whether the call may have waited for less than that: a free need not wait at all, and an event
  /// without a name may stand for an earlier operation.
  [[nodiscard]] bool may_wait_for_less(const HostCall& call) const {
    return call.kind == HostCallKind::kFree ||
           (call.kind == HostCallKind::kEventSync && !events_.contains(call.event));
  }

 private:
  // A call that names no stream waited for the only one that was at work.
  [[nodiscard]] std::optional<TraceTime> only_pending(TraceTime at) const {
    std::optional<TraceTime> found;
    for (const std::optional<TraceTime>& end : ends_) {
      if (!end || *end <= at) continue;
      if (found) return std::nullopt;
      found = end;
    }
    return found;
  }

  const RankTrace& trace_;
  std::vector<std::uint32_t> by_launch_;  ///< operations, in order of their launches
  std::size_t next_ = 0;                  ///< into by_launch_
  std::vector<std::optional<TraceTime>> ends_;  ///< by stream; nothing: no operation so far
  std::unordered_map<std::uint64_t, std::optional<TraceTime>> events_;
};

}  // namespace

Duration host_ahead(const RankTrace& trace) {
  ClockBounds bounds;
  LastEnds ends(trace);
  std::map<HostCallKind, std::vector<Duration>> doubtful;
  for (std::uint32_t i = 0; i < trace.host_calls.size(); ++i) {
    const HostCall& call = trace.host_calls[i];
    if (!trace.streams.empty()) {
      const std::optional<TraceTime> end = ends.awaited_by(call);
      if (end && ends.may_wait_for_less(call)) doubtful[call.kind].push_back(call.end() - *end);
      else if (end) bounds.add_wait(call.end() - *end);
    }
    ends.pass(i);
  }
  for (const auto& [kind, slacks] : doubtful) {
    if (std::ranges::any_of(slacks, [](Duration slack) { return slack < -kClockError; })) continue;
    for (const Duration slack : slacks) bounds.add_wait(slack);
  }
  for (const DeviceOp& op : trace.device_ops) {
    if (op.launch == kNone) continue;
    const HostCall& call = trace.host_calls[op.launch];
    bounds.add_launch(call.start - op.start);
    if (call.kind != HostCallKind::kCopy) continue;
    if (copy_return(trace.names[call.name], trace.names[op.name], op.direction) ==
        CopyReturn::kAfterEnd) {
      bounds.add_wait(call.end() - op.end());
    }
  }
  return bounds.offset();
}

namespace {

// Length of a launch call of which no call with room shows it: the medians of 60 recordings are 3
// to 14 us.
constexpr Duration kUsualLaunch = std::chrono::microseconds(10);

std::size_t kind_of_launch(HostCallKind kind) {
  switch (kind) {
    case HostCallKind::kLaunchGraph: return 1;
    case HostCallKind::kCopy: return 2;
    case HostCallKind::kMemset: return 3;
    default: return 0;
  }
}

}  // namespace

LaunchQueues::LaunchQueues(const RankTrace& trace)
    : trace_(trace), streams_(trace.streams.size()), places_(trace.device_ops.size()),
      stalls_(trace.threads.size()) {
  std::vector<bool> launched(trace.host_calls.size());
  for (std::uint32_t i = 0; i < trace.device_ops.size(); ++i) {
    const DeviceOp& op = trace.device_ops[i];
    StreamOps& stream = streams_[op.stream.index()];
    places_[i] = static_cast<std::uint32_t>(stream.calls.size());
    if (op.launch == kNone || !launched[op.launch]) {
      stream.calls.push_back(static_cast<std::uint32_t>(stream.ops.size()));
    }
    if (op.launch != kNone) launched[op.launch] = true;
    stream.ends.push_back(stream.ends.empty() ? op.end() : std::max(stream.ends.back(), op.end()));
    stream.ops.push_back(i);
  }
  for (const HostStall& stall : trace.stalls) {
    if (stall.kind == StallKind::kQueueFull) stalls_[stall.thread.index()].push_back(stall);
  }
  measure_usual();
}

// Copies that blocked until they were done show nothing of a launch's cost.
void LaunchQueues::measure_usual() {
  usual_.fill(kUsualLaunch);
  std::array<std::vector<Duration>, 4> costs;
  std::vector<bool> seen(trace_.host_calls.size());
  for (std::uint32_t op = 0; op < trace_.device_ops.size(); ++op) {
    const std::uint32_t launch = trace_.device_ops[op].launch;
    if (launch == kNone || seen[launch]) continue;
    seen[launch] = true;
    const HostCall& call = trace_.host_calls[launch];
    if (trace_.device_ops[op].end() <= call.end() || nearly_full(call, op)) continue;
    costs[kind_of_launch(call.kind)].push_back(call.duration);
  }
  for (std::size_t kind = 0; kind < costs.size(); ++kind) {
    if (!costs[kind].empty()) usual_[kind] = upper_median(std::move(costs[kind]));
  }
}

Duration LaunchQueues::stalled(const HostCall& call) const {
  Duration sum{};
  const auto& stalls = stalls_[call.thread.index()];
  auto stall = std::ranges::upper_bound(
      stalls, call.start, {}, [](const HostStall& s) { return s.start + s.duration; });
  for (; stall != stalls.end() && stall->start < call.end(); ++stall) {
    sum += std::min(call.end(), stall->start + stall->duration) -
           std::max(call.start, stall->start);
  }
  return std::min(sum, call.duration);
}

// At least kNearlyFull launches before `first_op` on its stream were pending as the call began: the
// one that far before it was.
bool LaunchQueues::nearly_full(const HostCall& call, std::uint32_t first_op) const {
  const std::size_t place = places_[first_op];
  const StreamOps& stream = streams_[trace_.device_ops[first_op].stream.index()];
  return place >= kNearlyFull && stream.ends[stream.calls[place - kNearlyFull]] > call.start;
}

std::uint32_t LaunchQueues::last_ended(const HostCall& call, std::uint32_t first_op) const {
  const auto last_of = [&](const StreamOps& stream) {
    const auto after = std::upper_bound(stream.ends.begin(), stream.ends.end(), call.end());
    if (after == stream.ends.begin() || *std::prev(after) <= call.start) return kNone;
    return stream.ops[static_cast<std::size_t>(after - stream.ends.begin()) - 1];
  };
  std::uint32_t best = last_of(streams_[trace_.device_ops[first_op].stream.index()]);
  if (best != kNone && call.end() - trace_.device_ops[best].end() <= kNoticed) return best;
  for (const StreamOps& stream : streams_) {
    const std::uint32_t last = last_of(stream);
    if (last == kNone) continue;
    if (best == kNone || trace_.device_ops[last].end() > trace_.device_ops[best].end()) {
      best = last;
    }
  }
  return best;
}

QueueWait LaunchQueues::wait_of(std::uint32_t index, std::uint32_t first_op) const {
  const HostCall& call = trace_.host_calls[index];
  const Duration stall = stalled(call);
  if (stall > Duration::zero()) return {stall, last_ended(call, first_op), false};
  const bool waited_for_its_own = trace_.device_ops[first_op].end() <= call.end();
  const Duration usual = usual_[kind_of_launch(call.kind)];
  if (waited_for_its_own || call.duration <= kFarAbove * usual || !nearly_full(call, first_op)) {
    return {};
  }
  const std::uint32_t op = last_ended(call, first_op);
  if (op == kNone) return {};
  const Duration own = std::min(usual, call.end() - trace_.device_ops[op].end());
  return {call.duration - own, op, true};
}

}  // namespace bubblesim::traces
