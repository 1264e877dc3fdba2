#include "tests/conformance/recorded_jobs/longer_idle.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace bubblesim::testing {
namespace {

std::optional<TraceTime> first_mark(const traces::RankTrace& rank) {
  std::optional<TraceTime> first;
  for (const traces::Marker& marker : rank.markers) {
    if (marker.kind != traces::MarkerKind::kIteration) continue;
    first = std::min(first.value_or(marker.start), marker.start);
  }
  return first;
}

// The end of the longest span without anything before `mark`.
std::optional<TraceTime> idle_end(const traces::RankTrace& rank, TraceTime mark) {
  std::vector<std::pair<TraceTime, TraceTime>> spans{{mark, mark}};
  for (const auto& op : rank.device_ops) spans.emplace_back(op.start, op.end());
  for (const auto& call : rank.host_calls) spans.emplace_back(call.start, call.end());
  std::sort(spans.begin(), spans.end());
  std::optional<TraceTime> end;
  Duration longest{};
  TraceTime busy_until = spans.front().second;
  for (const auto& [start, stop] : spans) {
    if (start > mark) break;
    if (start - busy_until > longest) {
      longest = start - busy_until;
      end = start;
    }
    busy_until = std::max(busy_until, stop);
  }
  return end;
}

void move_all_before(traces::RankTrace& rank, TraceTime end, Duration by) {
  const auto move = [&](TraceTime& at) {
    if (at < end) at -= by;
  };
  for (auto& call : rank.host_calls) move(call.start);
  for (auto& op : rank.device_ops) move(op.start);
  for (auto& marker : rank.markers) move(marker.start);
  for (auto& sample : rank.memory) move(sample.at);
  for (auto& stall : rank.stalls) move(stall.start);
  for (auto& clock : rank.clocks) move(clock.at);
}

}  // namespace

void add_idle_at_begin(traces::RankTrace& rank, Duration more) {
  const auto mark = first_mark(rank);
  const auto end = mark ? idle_end(rank, *mark) : std::nullopt;
  if (end) move_all_before(rank, *end, more);
  if (rank.host_calls.empty()) return;
  traces::HostCall call;
  call.start = std::min(rank.host_calls.front().start, rank.device_ops.front().start) - more;
  call.duration = Duration{1'000};
  call.name = rank.names.intern("cudaGetDevice");
  call.thread = rank.host_calls.front().thread;
  rank.host_calls.insert(rank.host_calls.begin(), call);
  for (auto& op : rank.device_ops) {
    if (op.launch != traces::kNone) ++op.launch;
  }
}

}  // namespace bubblesim::testing
