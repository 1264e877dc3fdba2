// Host calls of driving threads, as spans; the terms are defined in bubbles.hpp.
#include "traces/inspect/host_activity.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace bubblesim::traces {
namespace {

/// By thread index; where no kernel launch was recorded, every thread drives.
std::vector<char> driving_threads(const RankTrace& rank) {
  std::vector<char> driving;
  for (const HostCall& call : rank.host_calls) {
    if (call.kind != HostCallKind::kLaunchKernel && call.kind != HostCallKind::kLaunchGraph) {
      continue;
    }
    if (call.thread.index() >= driving.size()) driving.resize(call.thread.index() + 1, 0);
    driving[call.thread.index()] = 1;
  }
  if (driving.empty()) driving.assign(rank.threads.size(), 1);
  return driving;
}

/// Calls that returned no earlier than a copy or memset of theirs ended.
std::vector<char> calls_that_waited(const RankTrace& rank) {
  std::vector<char> waited(rank.host_calls.size(), 0);
  for (const DeviceOp& op : rank.device_ops) {
    const bool transfer = op.kind == DeviceOpKind::kCopy || op.kind == DeviceOpKind::kMemset;
    if (!transfer || op.launch >= waited.size()) continue;
    if (rank.host_calls[op.launch].end() >= op.end()) waited[op.launch] = 1;
  }
  return waited;
}

bool always_waits(HostCallKind kind) {
  return kind == HostCallKind::kStreamSync || kind == HostCallKind::kDeviceSync ||
         kind == HostCallKind::kEventSync || kind == HostCallKind::kFree;
}

Intervals silent_stretches(const Intervals& calls, Duration host_silence) {
  const Interval always{TraceTime{Duration{std::numeric_limits<std::int64_t>::min() / 4}},
                        TraceTime{Duration{std::numeric_limits<std::int64_t>::max() / 4}}};
  Intervals pauses = gaps_within(calls, always);
  std::erase_if(pauses, [&](const Interval& pause) { return pause.length() < host_silence; });
  return pauses;
}

}  // namespace

HostPauses host_activity(const RankTrace& rank, Duration host_silence) {
  const std::vector<char> driving = driving_threads(rank);
  const std::vector<char> waited = calls_that_waited(rank);
  std::vector<Interval> blocking;
  std::vector<Interval> working;
  for (std::size_t i = 0; i < rank.host_calls.size(); ++i) {
    const HostCall& call = rank.host_calls[i];
    const bool drives = call.thread.index() < driving.size() && driving[call.thread.index()] != 0;
    if (!drives || call.kind == HostCallKind::kEventQuery) continue;
    const bool blocks = always_waits(call.kind) || waited[i] != 0;
    (blocks ? blocking : working).push_back({call.start, std::max(call.start, call.end())});
  }
  const Intervals blocked = unite(std::move(blocking));
  const Intervals busy = unite(std::move(working));
  std::vector<Interval> in_calls = blocked;
  in_calls.insert(in_calls.end(), busy.begin(), busy.end());
  return {subtract(blocked, busy), silent_stretches(unite(std::move(in_calls)), host_silence)};
}

Intervals IntervalCursor::parts_within(Interval part) {
  while (first_ < spans_.size() && spans_[first_].end <= part.begin) ++first_;
  Intervals inside;
  for (std::size_t i = first_; i < spans_.size() && spans_[i].begin < part.end; ++i) {
    const Interval common{std::max(spans_[i].begin, part.begin),
                          std::min(spans_[i].end, part.end)};
    if (common.length() > Duration{}) inside.push_back(common);
  }
  return inside;
}

}  // namespace bubblesim::traces
