#include "sim/workload/polling.hpp"

#include <algorithm>

namespace bubblesim::workload {
namespace {

using traces::HostCall;
using traces::HostCallKind;

std::vector<bool> launching_threads(const traces::RankTrace& trace) {
  std::vector<bool> launching(trace.threads.size());
  for (const HostCall& call : trace.host_calls) {
    if (call.kind == HostCallKind::kLaunchKernel || call.kind == HostCallKind::kLaunchGraph) {
      launching[call.thread.index()] = true;
    }
  }
  return launching;
}

/// The ends of a recording's operations by the host's clock, sorted when they are first asked for.
class SortedEnds {
 public:
  SortedEnds(const traces::RankTrace& trace, Duration host_ahead)
      : trace_(trace), host_ahead_(host_ahead) {}

  /// Whether an operation ended in (after, until].
  [[nodiscard]] bool any_in(TraceTime after, TraceTime until) {
    if (ends_.empty()) sort();
    const auto ended = std::upper_bound(ends_.begin(), ends_.end(), after);
    return ended != ends_.end() && *ended <= until;
  }

 private:
  void sort() {
    ends_.reserve(trace_.device_ops.size());
    for (const traces::DeviceOp& op : trace_.device_ops) ends_.push_back(op.end() + host_ahead_);
    std::sort(ends_.begin(), ends_.end());
  }

  const traces::RankTrace& trace_;
  Duration host_ahead_;
  std::vector<TraceTime> ends_;
};

/// The queries of one thread since its last other call, into RankTrace::host_calls.
using QueryRow = std::vector<std::uint32_t>;

bool is_poll(const QueryRow& row, const traces::RankTrace& trace, SortedEnds& ends) {
  if (row.size() < kFewestQueries) return false;
  const HostCall& last = trace.host_calls[row.back()];
  if (last.end() - trace.host_calls[row.front()].start < kShortestPoll) return false;
  const TraceTime asked = trace.host_calls[row[row.size() - 2]].start;
  return ends.any_in(asked - kClockDoubt, last.end());
}

}  // namespace

std::vector<Poll> find_polls(const traces::RankTrace& trace, Duration host_ahead) {
  const std::vector<bool> launching = launching_threads(trace);
  SortedEnds ends(trace, host_ahead);
  std::vector<QueryRow> rows(trace.threads.size());
  std::vector<Poll> polls;
  const auto close = [&](QueryRow& row) {
    if (is_poll(row, trace, ends)) polls.push_back({row.front(), row.back()});
    row.clear();
  };
  for (std::uint32_t i = 0; i < trace.host_calls.size(); ++i) {
    const HostCall& call = trace.host_calls[i];
    QueryRow& row = rows[call.thread.index()];
    if (!launching[call.thread.index()] || call.kind == HostCallKind::kOther) continue;
    const bool follows =
        call.kind == HostCallKind::kEventQuery &&
        (row.empty() || call.start - trace.host_calls[row.back()].end() <= kLongestQueryPause);
    if (!follows) close(row);
    if (call.kind == HostCallKind::kEventQuery) row.push_back(i);
  }
  for (QueryRow& row : rows) close(row);
  return polls;
}

}  // namespace bubblesim::workload
