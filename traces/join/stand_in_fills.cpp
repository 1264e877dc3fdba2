// What a stand-in of collectives (capture/torch) does to give its outputs values is no work of the
// job that it stands in for: calls within its ranges, and the operations that they launched.
#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "traces/join/join_counters.hpp"
#include "traces/join/join_parts.hpp"

namespace bubblesim::traces {
namespace {

constexpr std::string_view kFillRange = "bubblesim.fill";

bool is_fill(std::string_view name) {
  const std::size_t at = name.find(kFillRange);
  if (at == std::string_view::npos) return false;
  const std::size_t end = at + kFillRange.size();
  return end == name.size() || name[end] == ' ';
}

using Ranges = std::vector<std::vector<const Marker*>>;

/// By thread, in order of start. Fills do not nest.
Ranges fill_ranges(const RankTrace& trace) {
  std::vector<bool> fills(trace.names.size());
  bool has_fills = false;
  for (std::uint32_t i = 0; i < trace.names.size(); ++i) {
    fills[i] = is_fill(trace.names[NameId{i}]);
    has_fills = has_fills || fills[i];
  }
  Ranges ranges;
  if (!has_fills) return ranges;
  ranges.resize(trace.threads.size());
  for (const Marker& marker : trace.markers) {
    if (fills[marker.name.index()]) ranges[marker.thread.index()].push_back(&marker);
  }
  return ranges;
}

bool is_inside(const std::vector<const Marker*>& ranges, const HostCall& call) {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), call.start,
      [](TraceTime at, const Marker* range) { return at < range->start; });
  if (after == ranges.begin()) return false;
  const Marker& range = **std::prev(after);
  return call.end() <= range.start + range.duration;
}

}  // namespace

void drop_stand_in_fills(RankTrace& trace) {
  const Ranges ranges = fill_ranges(trace);
  if (ranges.empty()) return;
  std::unordered_set<std::uint64_t> dropped;
  std::erase_if(trace.host_calls, [&](const HostCall& call) {
    if (call.correlation == 0 || !is_inside(ranges[call.thread.index()], call)) return false;
    dropped.insert(call.correlation);
    return true;
  });
  const std::size_t ops = std::erase_if(trace.device_ops, [&](const DeviceOp& op) {
    return dropped.contains(op.correlation);
  });
  std::erase_if(trace.syncs, [&](const SyncRecord& sync) {
    return dropped.contains(sync.correlation);
  });
  trace.counters.add(join::kFillsDropped, ops);
}

}  // namespace bubblesim::traces
