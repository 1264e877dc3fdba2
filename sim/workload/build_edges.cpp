// Cross-stream dependencies: recorded ones, and those that event calls without stream imply.
//
// Most profilers write cudaStreamWaitEvent without saying which stream waits for which event.
// The rule used (sim/workload/README.md): the wait belongs to the next launch on the same host
// thread; it waits for the last operation launched before the wait on another stream. Where
// several streams qualify, the operation that ended last before the waiter's start is taken.
// A pair that contradicts the recorded times is dropped.
#include <algorithm>

#include "sim/workload/build_counters.hpp"
#include "sim/workload/event_records.hpp"
#include "sim/workload/program_draft.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

constexpr std::size_t kMostEdges = 200;

bool has_edge(const Draft& draft, const DraftOp& op, std::uint32_t before) {
  std::uint32_t edge = op.first_edge;
  while (edge != program::kNoIndex && draft.edges[edge].before != before) {
    edge = draft.edges[edge].next;
  }
  return edge != program::kNoIndex;
}

/// Says whether the edge is new.
bool add_new_edge(Draft& draft, DraftOp& op, std::uint32_t before) {
  if (has_edge(draft, op, before) || draft.edge_count(op) >= kMostEdges) return false;
  draft.add_edge(op, before, {});
  return true;
}

void add_recorded(Draft& draft) {
  if (draft.trace->edges.empty()) return;
  const std::vector<std::uint32_t> places = place_of_each(draft);
  for (const traces::Edge& edge : draft.trace->edges) {
    const std::uint32_t before = places[edge.before.index()];
    const std::uint32_t after = places[edge.after.index()];
    if (before == program::kNoIndex || after == program::kNoIndex) continue;
    if (draft.ops[before].end > draft.ops[after].start) continue;
    add_new_edge(draft, draft.ops[after], before);
  }
}

// The first launch on `thread` that starts at or after `at`.
const DraftCall* next_launch(const Draft& draft, std::uint32_t thread, TraceTime at) {
  const auto& calls = draft.thread_calls[thread];
  auto place = std::lower_bound(calls.begin(), calls.end(), at, [&](std::uint32_t i, TraceTime t) {
    return draft.calls[i].start < t;
  });
  while (place != calls.end() && draft.calls[*place].op_count == 0) ++place;
  return place == calls.end() ? nullptr : &draft.calls[*place];
}

// Per stream, the last operation launched so far, as the calls are walked in time order.
class LastLaunched {
 public:
  explicit LastLaunched(const Draft& draft)
      : draft_(draft), last_(draft.trace->streams.size(), program::kNoIndex) {}

  void advance_to(TraceTime at) {
    for (; next_ < draft_.calls.size() && draft_.calls[next_].start < at; ++next_) {
      const DraftCall& call = draft_.calls[next_];
      for (std::uint32_t i = 0; i < call.op_count; ++i) {
        last_[draft_.stream_of(draft_.ops[call.target + i])] = call.target + i;
      }
    }
  }

  /// The latest-ending operation on another stream that ended before `op` started.
  [[nodiscard]] std::uint32_t best_for(const DraftOp& op) const {
    std::uint32_t best = program::kNoIndex;
    for (std::size_t stream = 0; stream < last_.size(); ++stream) {
      if (stream == draft_.stream_of(op) || last_[stream] == program::kNoIndex) continue;
      const DraftOp& candidate = draft_.ops[last_[stream]];
      if (candidate.end > op.start) continue;
      if (best == program::kNoIndex || candidate.end > draft_.ops[best].end) best = last_[stream];
    }
    return best;
  }

 private:
  const Draft& draft_;
  std::vector<std::uint32_t> last_;
  std::size_t next_ = 0;
};

// A wait whose stream and event are known has its edge, or needs none.
bool is_known(const traces::HostCall& wait, TraceTime at, const EventRecords& events) {
  return wait.stream != traces::kNone && events.knows(wait.event, at);
}

void add_inferred(Draft& draft) {
  LastLaunched last(draft);
  const EventRecords events(draft);
  for (const traces::HostCall& wait : draft.trace->host_calls) {
    if (wait.kind != HostCallKind::kStreamWaitEvent) continue;
    if (!draft.holds(wait.start)) continue;
    const TraceTime at = draft.called(wait.start);
    if (is_known(wait, at, events)) continue;
    last.advance_to(at);
    const DraftCall* launch = next_launch(draft, wait.thread.value, at);
    if (launch == nullptr) continue;
    DraftOp& op = draft.ops[launch->target];
    const std::uint32_t before = last.best_for(op);
    if (before == program::kNoIndex) continue;
    if (add_new_edge(draft, op, before)) draft.counters.add(kInferredEdges);
  }
}

}  // namespace

void Draft::add_edge(DraftOp& op, std::uint32_t before, Duration lag) {
  std::uint32_t* link = &op.first_edge;
  while (*link != program::kNoIndex) link = &edges[*link].next;
  *link = static_cast<std::uint32_t>(edges.size());
  edges.push_back({before, program::kNoIndex, lag});
}

std::size_t Draft::edge_count(const DraftOp& op) const {
  std::size_t count = 0;
  for (std::uint32_t edge = op.first_edge; edge != program::kNoIndex; edge = edges[edge].next) {
    ++count;
  }
  return count;
}

void find_edges(Draft& draft) {
  add_recorded(draft);
  add_inferred(draft);
}

}  // namespace bubblesim::workload
