// Choosing the window of a trace: where it begins and ends, its iterations, its clock.
#include <algorithm>
#include <chrono>

#include "sim/workload/build_counters.hpp"
#include "sim/workload/program_draft.hpp"
#include "traces/iterations/host_clock.hpp"
#include "traces/iterations/marked_iterations.hpp"

namespace bubblesim::workload {
namespace {

void set_whole_window(Draft& draft) {
  const traces::RankTrace& trace = *draft.trace;
  draft.begin = TraceTime::max();
  draft.end = TraceTime::min();
  for (const auto& call : trace.host_calls) {
    draft.begin = std::min(draft.begin, draft.called(call.start));
    draft.end = std::max(draft.end, draft.called(call.end()));
  }
  for (const auto& op : trace.device_ops) {
    draft.begin = std::min(draft.begin, op.start);
    draft.end = std::max(draft.end, op.end());
  }
  for (const TraceTime start : draft.iteration_starts) draft.begin = std::min(draft.begin, start);
  if (draft.share.hosts == nullptr) return;
  const auto first = draft.share.hosts->begin(draft.share.rank);
  if (first) draft.begin = std::min(draft.begin, draft.called(*first));
}

// All that are recorded; markers left out are counted where the job's pass is found.
void set_iterations(Draft& draft) {
  traces::RankPass pass;
  traces::find_recorded(*draft.trace, pass);
  draft.marked = pass.marked;
  draft.marked_thread = pass.thread;
  if (!pass.marked) {
    draft.counters.add(kUnmarked);
    return;
  }
  for (const traces::RecordedIteration& iteration : pass.recorded) {
    draft.iteration_starts.push_back(draft.called(iteration.host.begin));
  }
  draft.iterations_end = draft.called(pass.recorded.back().host.end);
}

// One iteration, from the first record to the last host call.
void set_unmarked_iteration(Draft& draft) {
  const traces::RankTrace& trace = *draft.trace;
  draft.iteration_starts.push_back(draft.begin);
  draft.iterations_end = trace.host_calls.empty() ? draft.end : draft.begin;
  for (const auto& call : trace.host_calls) {
    draft.iterations_end = std::max(draft.iterations_end, draft.called(call.end()));
  }
}

void set_recording(Draft& draft) {
  set_iterations(draft);
  set_whole_window(draft);
  if (!draft.marked) set_unmarked_iteration(draft);
}

void set_pass(Draft& draft) {
  const traces::RankPass& pass = *draft.pass;
  draft.marked = pass.marked;
  draft.marked_thread = pass.thread;
  if (!pass.marked) draft.counters.add(kUnmarked);
  draft.counters.merge(pass.counters);
  draft.begin = draft.called(pass.host.begin);
  draft.end = draft.called(pass.host.end);
  for (std::size_t i = pass.first; i < pass.first + pass.count; ++i) {
    draft.iteration_starts.push_back(draft.called(pass.recorded[i].host.begin));
  }
  draft.iterations_end = draft.end;
}

}  // namespace

void set_window(Draft& draft) {
  draft.host_ahead =
      draft.pass == nullptr ? traces::host_ahead(*draft.trace) : draft.pass->host_ahead;
  if (draft.host_ahead != Duration{}) {
    draft.counters.add(kHostClocksMoved);
    draft.counters.add(kClockOffsets,
                       static_cast<std::uint64_t>(std::chrono::abs(draft.host_ahead).count()));
  }
  if (draft.pass == nullptr) {
    set_recording(draft);
  } else {
    set_pass(draft);
  }
}

}  // namespace bubblesim::workload
