#include "traces/iterations/launch_queues.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/nearest_rank.hpp"

namespace bubblesim::traces {
namespace {

// Of a launch call whose kind no call with room shows: the medians of 60 recordings are 3 to 14 us.
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
  auto stall = std::lower_bound(
      stalls.begin(), stalls.end(), call.start,
      [](const HostStall& s, TraceTime at) { return s.start + s.duration <= at; });
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
