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

std::vector<TraceTime> sorted_ends(const traces::RankTrace& trace) {
  std::vector<TraceTime> ends;
  ends.reserve(trace.device_ops.size());
  for (const traces::DeviceOp& op : trace.device_ops) ends.push_back(op.end());
  std::sort(ends.begin(), ends.end());
  return ends;
}

/// The queries of one thread since its last other call.
struct QueryRow {
  std::vector<std::uint32_t> queries;  // calls of the trace
};

bool is_poll(const QueryRow& row, const traces::RankTrace& trace,
             const std::vector<TraceTime>& ends) {
  if (row.queries.size() < kFewestQueries) return false;
  const HostCall& last = trace.host_calls[row.queries.back()];
  if (last.end() - trace.host_calls[row.queries.front()].start < kShortestPoll) return false;
  const TraceTime asked = trace.host_calls[row.queries[row.queries.size() - 2]].start;
  const auto ended = std::upper_bound(ends.begin(), ends.end(), asked);
  return ended != ends.end() && *ended <= last.end();
}

}  // namespace

std::vector<Poll> find_polls(const traces::RankTrace& trace) {
  const std::vector<bool> launching = launching_threads(trace);
  const std::vector<TraceTime> ends = sorted_ends(trace);
  std::vector<QueryRow> rows(trace.threads.size());
  std::vector<Poll> polls;
  const auto close = [&](QueryRow& row) {
    if (is_poll(row, trace, ends)) polls.push_back({row.queries.front(), row.queries.back()});
    row.queries.clear();
  };
  for (std::uint32_t i = 0; i < trace.host_calls.size(); ++i) {
    const HostCall& call = trace.host_calls[i];
    QueryRow& row = rows[call.thread.index()];
    if (!launching[call.thread.index()] || call.kind == HostCallKind::kOther) continue;
    const bool follows =
        call.kind == HostCallKind::kEventQuery &&
        (row.queries.empty() ||
         call.start - trace.host_calls[row.queries.back()].end() <= kLongestQueryPause);
    if (!follows) close(row);
    if (call.kind == HostCallKind::kEventQuery) row.queries.push_back(i);
  }
  for (QueryRow& row : rows) close(row);
  return polls;
}

}  // namespace bubblesim::workload
