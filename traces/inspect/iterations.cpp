// Iterations from markers; definitions in the header.
#include "traces/inspect/iterations.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace bubblesim::traces {
namespace {

constexpr CounterSpec kMarkersLeftOut{
    "inspect_iteration_markers_left_out", Severity::kNotice,
    "iteration markers on other threads than the one whose markers were used, or that start "
    "together with one that was"};
constexpr CounterSpec kNoneMarked{
    "inspect_no_iterations_marked", Severity::kNotice,
    "ranks without iteration markers; the whole window was taken as one iteration"};

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

}  // namespace

Iterations find_iterations(const RankTrace& rank, const DeviceUse& use, CounterSet& counters) {
  const std::vector<const Marker*> markers = iteration_markers(rank, counters);
  Iterations iterations;
  iterations.marked = !markers.empty();
  if (markers.empty()) {
    counters.add(kNoneMarked);
    if (!use.busy.empty()) iterations.all.push_back({-1, use.window, {}, {}});
  }
  for (std::size_t i = 0; i < markers.size(); ++i) {
    const Marker& marker = *markers[i];
    TraceTime end = marker.start + std::max(marker.duration, Duration{});
    if (i + 1 < markers.size()) {
      end = markers[i + 1]->start;
    } else if (marker.duration <= Duration{}) {
      end = std::max(end, use.window.end);
    }
    iterations.all.push_back({marker.number, {marker.start, end}, {}, {}});
  }
  for (Iteration& iteration : iterations.all) {
    iteration.busy = total_length(clip(use.busy, iteration.span));
    iteration.own = total_length(clip(use.own, iteration.span));
  }
  return iterations;
}

std::optional<Interval> steady_window(const Iterations& iterations, Interval window) {
  if (!iterations.marked || iterations.all.size() < 2) return std::nullopt;
  const Interval steady{std::max(iterations.all[1].span.begin, window.begin),
                        std::min(iterations.all.back().span.end, window.end)};
  if (steady.begin >= steady.end) return std::nullopt;
  return steady;
}

Duration Iterations::steady_mean() const {
  if (all.empty()) return {};
  if (all.size() == 1) return all.front().span.length();
  const Duration sum = all.back().span.end - all[1].span.begin;
  return sum / static_cast<std::int64_t>(all.size() - 1);
}

Duration Iterations::shortest() const {
  Duration least = all.empty() ? Duration{} : Duration::max();
  for (const Iteration& iteration : all) least = std::min(least, iteration.span.length());
  return least;
}

Duration Iterations::longest() const {
  Duration most{};
  for (const Iteration& iteration : all) most = std::max(most, iteration.span.length());
  return most;
}

}  // namespace bubblesim::traces
