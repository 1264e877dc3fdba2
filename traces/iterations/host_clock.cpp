// Profilers turn one clock's times into the other's with an error of microseconds. A launch begins
// before its operation does: the host's clock is ahead by at least what the launch begins after it.
// A wait, and a copy that blocks, returns when what it waited for has ended: the clock is ahead by
// at most what it returns after that. The offset nearest to zero within both bounds is taken.
// Measured: 17 to 46 us ahead on some ranks of TorchRec's V100 jobs, where most operations start
// before their launches; 5 to 7 us behind in recordings whose waits return before their last
// operation's end.
#include "traces/iterations/host_clock.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "traces/names/host_call_names.hpp"

namespace bubblesim::traces {
namespace {

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
  explicit LastEnds(const RankTrace& trace) : trace_(trace), ends_(trace.streams.size()) {
    for (std::uint32_t i = 0; i < trace.device_ops.size(); ++i) {
      if (trace.device_ops[i].launch != kNone) by_launch_.push_back(i);
    }
    std::ranges::stable_sort(by_launch_, {}, [&](std::uint32_t i) {
      return trace.device_ops[i].launch;
    });
  }

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

}  // namespace bubblesim::traces
