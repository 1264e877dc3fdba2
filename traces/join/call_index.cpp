#include "traces/join/call_index.hpp"

#include <algorithm>

#include "traces/sort_records.hpp"

namespace bubblesim::traces {
namespace {

/// Calls of one correlation that are looked at on either side of an operation: a handful in real
/// files; the bound keeps hostile ones linear.
constexpr std::ptrdiff_t kNearest = 64;

bool fits(HostCallKind kind, CallIndex::Want want) {
  if (want == CallIndex::Want::kAny) return true;
  return want == CallIndex::Want::kLaunch ? is_launch(kind) : kind == HostCallKind::kEventRecord;
}

}  // namespace

void CallIndex::order() {
  // Most profilers number calls in order of start.
  sort_stably(entries_, [](const Entry& a, const Entry& b) {
    return a.correlation < b.correlation;
  });
}

std::uint32_t CallIndex::find(std::uint64_t correlation, TraceTime at, Want want) const {
  const auto [first, last] =
      std::ranges::equal_range(entries_, correlation, {}, &Entry::correlation);
  if (first == last) return kNone;
  // Calls of one correlation are in order of start, for calls are.
  const auto later = std::ranges::upper_bound(first, last, at, {}, &Entry::start);
  const auto wanted = [&](const Entry& entry) { return fits(entry.kind, want); };
  const auto back_limit = later - std::min(later - first, kNearest);
  for (auto entry = later; entry != back_limit;) {
    if (wanted(*--entry)) return entry->call;
  }
  const auto ahead_limit = later + std::min(last - later, kNearest);
  const auto ahead = std::find_if(later, ahead_limit, wanted);
  if (ahead != ahead_limit) return ahead->call;
  return later == first ? first->call : std::prev(later)->call;
}

std::uint64_t CallIndex::renumber(std::span<HostCall> calls) const {
  std::uint64_t next = entries_.empty() ? 1 : entries_.back().correlation;
  std::uint64_t renumbered = 0;
  for (std::size_t i = 1; i < entries_.size(); ++i) {
    if (entries_[i].correlation != entries_[i - 1].correlation) continue;
    calls[entries_[i].call].correlation = ++next;
    ++renumbered;
  }
  return renumbered;
}

}  // namespace bubblesim::traces
