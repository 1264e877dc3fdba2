// Iterations from markers, or one of everything; definitions in job_pass.hpp.
#include "traces/iterations/marked_iterations.hpp"

#include <algorithm>
#include <map>

namespace bubblesim::traces {
namespace {

constexpr CounterSpec kMarkersLeftOut{
    "iteration_markers_left_out", Severity::kNotice,
    "iteration markers on other threads than the one whose markers were used, or that start "
    "together with one that was"};

constexpr CounterSpec kNumbersAgain{
    "iteration_numbers_start_again", Severity::kNotice,
    "iteration markers whose number is not above that of the one before: steps counted anew in "
    "each epoch; a number then names an iteration of each"};

constexpr Duration kShortest{1};

std::vector<const Marker*> iteration_markers(const RankTrace& rank, CounterSet& counters) {
  std::map<ThreadId, std::vector<const Marker*>> by_thread;
  std::size_t found = 0;
  for (const Marker& marker : rank.markers) {
    if (marker.kind != MarkerKind::kIteration) continue;
    by_thread[marker.thread].push_back(&marker);
    ++found;
  }
  std::vector<const Marker*> markers;
  for (auto& [thread, of_thread] : by_thread) {
    if (of_thread.size() > markers.size()) markers = std::move(of_thread);
  }
  std::stable_sort(markers.begin(), markers.end(),
                   [](const Marker* a, const Marker* b) { return a->start < b->start; });
  const auto same = [](const Marker* a, const Marker* b) { return a->start == b->start; };
  markers.erase(std::unique(markers.begin(), markers.end(), same), markers.end());
  if (found > markers.size()) counters.add(kMarkersLeftOut, found - markers.size());
  return markers;
}

TraceTime last_end(const RankTrace& rank) {
  TraceTime end = TraceTime::min();
  for (const DeviceOp& op : rank.device_ops) end = std::max(end, op.end());
  return end;
}

void add_marked(const RankTrace& rank, const std::vector<const Marker*>& markers,
                RankPass& pass) {
  const bool numbered = std::all_of(markers.begin(), markers.end(),
                                    [](const Marker* marker) { return marker->number >= 0; });
  for (std::size_t i = 0; i < markers.size(); ++i) {
    const Marker& marker = *markers[i];
    TraceTime end = marker.start + std::max(marker.duration, Duration{});
    if (i + 1 < markers.size()) {
      end = markers[i + 1]->start;
    } else if (marker.duration <= Duration{}) {
      end = std::max(end, last_end(rank));
    }
    const std::int64_t number = numbered ? marker.number : static_cast<std::int64_t>(i);
    if (i > 0 && number <= pass.recorded.back().number) pass.counters.add(kNumbersAgain);
    pass.recorded.push_back({number, {marker.start, end}});
  }
  pass.thread = markers.front()->thread.value;
}

// Thread that calls most.
std::uint32_t busiest_thread(const RankTrace& rank) {
  std::vector<std::size_t> calls(rank.threads.size() + 1);
  for (const HostCall& call : rank.host_calls) ++calls[call.thread.index()];
  const auto most = std::max_element(calls.begin(), calls.end());
  return static_cast<std::uint32_t>(rank.host_calls.empty() ? rank.threads.size()
                                                            : most - calls.begin());
}

constexpr Interval kNothing{TraceTime::max(), TraceTime::min()};

// From the first launch or synchronisation to the return of the last. Half-open, so that it holds a
// last call without length too.
Interval calls_span(const RankTrace& rank) {
  Interval span = kNothing;
  const TraceTime work_ends = last_end(rank);
  for (const HostCall& call : rank.host_calls) {
    const bool launches = is_launch(call.kind);
    if (!launches && (!is_synchronisation(call.kind) || call.start >= work_ends)) continue;
    span.begin = std::min(span.begin, call.start);
    const TraceTime end = launches ? call.end() : std::min(call.end(), work_ends);
    span.end = std::max({span.end, end, call.start + kShortest});
  }
  return span;
}

std::vector<bool> streams_with_launch(const RankTrace& rank) {
  std::vector<bool> launched(rank.streams.size());
  for (const DeviceOp& op : rank.device_ops) {
    if (op.launch != kNone) launched[op.stream.index()] = true;
  }
  return launched;
}

// What the host says of it, and the device where no launch does: operations of streams without any
// belong by when they start (device_work.hpp), the last of them after the last call perhaps, and,
// where no stream has any, the first of them before the first call.
Interval everything(const RankTrace& rank) {
  const Interval calls = calls_span(rank);
  const bool called = calls != kNothing;
  const std::vector<bool> launched = streams_with_launch(rank);
  const bool any_launch = std::ranges::find(launched, true) != launched.end();
  Interval span = calls;
  for (const DeviceOp& op : rank.device_ops) {
    if (called && launched[op.stream.index()]) continue;
    if (!called || !any_launch) span.begin = std::min(span.begin, op.start);
    if (op.start < calls.end) continue;
    span.end = std::max({span.end, op.end(), op.start + kShortest});
  }
  return span;
}

}  // namespace

bool is_launch(HostCallKind kind) {
  return kind == HostCallKind::kLaunchKernel || kind == HostCallKind::kLaunchGraph ||
         kind == HostCallKind::kCopy || kind == HostCallKind::kMemset;
}

bool is_synchronisation(HostCallKind kind) {
  return kind == HostCallKind::kStreamSync || kind == HostCallKind::kDeviceSync ||
         kind == HostCallKind::kEventSync;
}

void find_recorded(const RankTrace& rank, RankPass& pass) {
  const std::vector<const Marker*> markers = iteration_markers(rank, pass.counters);
  pass.marked = !markers.empty();
  if (pass.marked) {
    add_marked(rank, markers, pass);
    return;
  }
  pass.thread = busiest_thread(rank);
  if (!rank.device_ops.empty()) pass.recorded.push_back({0, everything(rank)});
}

}  // namespace bubblesim::traces
