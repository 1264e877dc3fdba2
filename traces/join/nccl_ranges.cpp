#include "traces/join/nccl_ranges.hpp"

#include <algorithm>
#include <string_view>

#include "traces/names/collective_names.hpp"

namespace bubblesim::traces {
namespace {

constexpr std::string_view kPrefix = "nccl:";
constexpr int kDeepest = 8;  ///< ranges nest at most a few deep

}  // namespace

NcclRanges::NcclRanges(const RankTrace& trace) : ranges_(trace.threads.size()) {
  for (const Marker& marker : trace.markers) {
    std::string_view name = trace.names[marker.name];
    if (!name.starts_with(kPrefix)) continue;
    name.remove_prefix(kPrefix.size());
    const CollectiveKind kind = kind_of_collective(name.substr(0, name.find(',')));
    // One end of a transfer says no peer: known as it is here, it would no longer meet the other.
    const bool one_end = kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv;
    if (kind == CollectiveKind::kUnknown || one_end) continue;
    ranges_[marker.thread.index()].push_back({marker.start, marker.start + marker.duration, kind});
  }
}

std::optional<CollectiveKind> NcclRanges::kind_of(CollectiveKind known,
                                                  const HostCall& launch) const {
  if (known != CollectiveKind::kSendRecv && known != CollectiveKind::kUnknown) return std::nullopt;
  const std::vector<Range>& ranges = ranges_[launch.thread.index()];
  auto range = std::upper_bound(ranges.begin(), ranges.end(), launch.start,
                                [](TraceTime at, const Range& r) { return at < r.start; });
  for (int depth = 0; depth < kDeepest && range != ranges.begin(); ++depth) {
    --range;
    if (launch.start <= range->end) return range->kind;
  }
  return std::nullopt;
}

}  // namespace bubblesim::traces
