// Cross-stream dependencies: recorded ones, and those that event calls without stream imply.
//
// Most profilers write cudaStreamWaitEvent without saying which stream waits for which event.
// The rule used: the wait belongs to the next launch on the same host
// thread; it waits for the last operation launched before the wait on another stream. Where
// several streams qualify, the operation that ended last before the waiter's start is taken. Where
// the thread launches on several streams before it records an event or has a stream wait again, and
// the waiter could not have started before the awaited operation ended, the wait may be another
// stream's: the awaited operation's time counts as unexplained.
// A pair that contradicts the recorded times is dropped. Of a pass that repeats, what waits for an
// earlier iteration's operation waits for the one in its place in the pass before.
#include <algorithm>
#include <utility>
#include <vector>

#include "sim/workload/build_counters.hpp"
#include "sim/workload/program_draft.hpp"
#include "sim/workload/stream_order.hpp"

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;

constexpr std::size_t kMostEdges = 200;

bool has_edge(const Draft& draft, const DraftOp& op, Before before) {
  std::uint32_t edge = op.first_edge;
  while (edge != program::kNoIndex && (draft.edges[edge].before != before.op ||
                                       draft.edges[edge].passes_back != before.passes_back)) {
    edge = draft.edges[edge].next;
  }
  return edge != program::kNoIndex;
}

enum class Origin : std::uint8_t { kRecorded, kInferred };

/// Says whether the edge is new.
bool add_new_edge(Draft& draft, DraftOp& op, Before before, Origin origin = Origin::kRecorded) {
  if (has_edge(draft, op, before) || draft.edge_count(op) >= kMostEdges) return false;
  draft.add_edge(op, before.op, {}, before.passes_back).inferred = origin == Origin::kInferred;
  return true;
}

/// Recorded operations from before a pass, as the pass has them.
class EarlierPasses {
 public:
  explicit EarlierPasses(const Draft& draft) : draft_(draft), places_(place_of_each(draft)) {}

  /// Nothing (kNoIndex) if it is not from before the pass, or another kernel is in its place.
  [[nodiscard]] Before find(std::uint32_t recorded) {
    const std::vector<traces::DeviceOp>& all = draft_.trace->device_ops;
    const auto& ops = draft_.stream_ops[all[recorded].stream.index()];
    if (places_[recorded] != program::kNoIndex) return {places_[recorded], 0};
    if (draft_.pass == nullptr || ops.empty()) return {};
    const std::uint32_t first = place_on_stream(draft_.ops[ops.front()].recorded);
    const std::uint32_t own = place_on_stream(recorded);
    if (own > first) return {};
    const auto length = static_cast<std::uint32_t>(ops.size());
    const std::uint32_t back = (first - own + length - 1) / length;
    const std::uint32_t op = ops[back * length - (first - own)];
    if (draft_.recorded(draft_.ops[op]).name != all[recorded].name) return {};
    return {op, back};
  }
  [[nodiscard]] std::uint32_t place(std::uint32_t recorded) const { return places_[recorded]; }

 private:
  [[nodiscard]] std::uint32_t place_on_stream(std::uint32_t recorded) {
    if (on_stream_.empty()) {
      std::vector<std::uint32_t> next(draft_.trace->streams.size());
      for (const traces::DeviceOp& op : draft_.trace->device_ops) {
        on_stream_.push_back(next[op.stream.index()]++);
      }
    }
    return on_stream_[recorded];
  }

  const Draft& draft_;
  std::vector<std::uint32_t> places_;     ///< by recorded operation, into Draft::ops
  std::vector<std::uint32_t> on_stream_;  ///< likewise: its place there; made when first asked
};

void add_recorded(Draft& draft) {
  if (draft.trace->edges.empty()) return;
  EarlierPasses passes(draft);
  for (const traces::Edge& edge : draft.trace->edges) {
    const std::uint32_t place = passes.place(edge.after.value);
    if (place == program::kNoIndex) continue;
    const Before before = passes.find(edge.before.value);
    if (before.op == program::kNoIndex) {
      draft.counters.add(kEdgesFromOutside);
      continue;
    }
    DraftOp& after = draft.ops[place];
    const bool same_stream = draft.stream_of(draft.ops[before.op]) == draft.stream_of(after);
    if (before.passes_back > 0 && same_stream) continue;  // its stream says so
    const Origin origin = edge.inferred ? Origin::kInferred : Origin::kRecorded;
    if (draft.end_of(before) <= after.start) add_new_edge(draft, after, before, origin);
  }
}

// What the legacy default stream and the streams that block with it make each operation wait for.
void add_default_stream(Draft& draft) {
  StreamOrder order(draft);
  if (!order.has_default_stream()) return;
  for (std::uint32_t i = 0; i < draft.ops.size(); ++i) {
    DraftOp& op = draft.ops[i];
    order.reach(draft.calls[op.call].start);
    for (const Before& before : order.launch(i)) {
      const bool same_stream = draft.stream_of(draft.ops[before.op]) == draft.stream_of(op);
      if (same_stream || draft.end_of(before) > op.start) continue;
      if (add_new_edge(draft, op, before)) draft.counters.add(kDefaultStreamEdges);
    }
  }
}

// The first launch on `thread` that starts at or after `at`.
const DraftCall* next_launch(const Draft& draft, std::uint32_t thread, TraceTime at) {
  const auto& calls = draft.thread_calls[thread];
  auto place = std::ranges::lower_bound(
      calls, at, {}, [&](std::uint32_t i) { return draft.calls[i].start; });
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

/// When threads record events or have streams wait, by thread.
std::vector<std::vector<TraceTime>> event_calls(const Draft& draft) {
  std::vector<std::vector<TraceTime>> calls(draft.trace->threads.size());
  for (const traces::HostCall& call : draft.trace->host_calls) {
    if (call.kind != HostCallKind::kStreamWaitEvent && call.kind != HostCallKind::kEventRecord) {
      continue;
    }
    calls[call.thread.index()].push_back(draft.called(call.start));
  }
  return calls;
}

// Whether the thread of `first` launches on another stream, too, from that call on, until `until`.
bool launches_on_several(const Draft& draft, const DraftCall& first, TraceTime until) {
  const auto& calls = draft.thread_calls[first.thread];
  const std::size_t stream = draft.stream_of(draft.ops[first.target]);
  auto place = std::ranges::lower_bound(calls, draft.ops[first.target].call);
  for (; place != calls.end() && draft.calls[*place].start < until; ++place) {
    const DraftCall& call = draft.calls[*place];
    for (std::uint32_t op = call.target; op < call.target + call.op_count; ++op) {
      if (draft.stream_of(draft.ops[op]) != stream) return true;
    }
  }
  return false;
}

// Whether the operation could have started before the other one ended, but did not.
bool seems_to_wait(const Draft& draft, const DraftOp& op, const DraftOp& before) {
  const bool previous_ended =
      op.previous == program::kNoIndex || draft.ops[op.previous].end < before.end;
  return previous_ended && draft.calls[op.call].end < before.end;
}

void add_stream_wait(Draft& draft, const LastLaunched& last, const DraftCall& launch,
                     TraceTime until) {
  DraftOp& op = draft.ops[launch.target];
  const std::uint32_t before = last.best_for(op);
  if (before == program::kNoIndex) return;
  if (add_new_edge(draft, op, {before, 0}, Origin::kInferred)) draft.counters.add(kInferredEdges);
  if (seems_to_wait(draft, op, draft.ops[before])) return;
  if (!launches_on_several(draft, launch, until)) return;
  draft.unknown_waits.push_back({launch.target, draft.ops[before].start});
  draft.counters.add(kUnknownStreamWaits);
}

void add_inferred(Draft& draft) {
  LastLaunched last(draft);
  StreamOrder order(draft);
  const std::vector<std::vector<TraceTime>> events = event_calls(draft);
  for (const traces::HostCall& wait : draft.trace->host_calls) {
    if (wait.kind != HostCallKind::kStreamWaitEvent) continue;
    if (!draft.holds(wait.start)) continue;
    const TraceTime at = draft.called(wait.start);
    order.reach(at);
    // A wait whose stream and event are known has its edge, or needs none.
    if (wait.stream != traces::kNone && order.awaited_for(wait.event) != nullptr) continue;
    last.advance_to(at);
    const DraftCall* launch = next_launch(draft, wait.thread.value, at);
    if (launch == nullptr) continue;
    const auto& calls = events[wait.thread.index()];
    const auto next = std::ranges::upper_bound(calls, launch->start);
    add_stream_wait(draft, last, *launch, next == calls.end() ? TraceTime::max() : *next);
  }
}

}  // namespace

DraftEdge& Draft::add_edge(DraftOp& op, std::uint32_t before, Duration lag,
                           std::uint32_t passes_back) {
  std::uint32_t* link = &op.first_edge;
  while (*link != program::kNoIndex) link = &edges[*link].next;
  *link = static_cast<std::uint32_t>(edges.size());
  return edges.emplace_back(DraftEdge{before, program::kNoIndex, lag, passes_back});
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
  add_default_stream(draft);
  add_inferred(draft);
}

void add_unknown_waits(Draft& draft) {
  auto& all = draft.unexplained;
  all.insert(all.end(), draft.unknown_waits.begin(), draft.unknown_waits.end());
  const auto key = [](const DraftDelay& delay) { return std::pair(delay.op, delay.since); };
  std::ranges::sort(all, {}, key);
  all.erase(std::ranges::unique(all, {}, &DraftDelay::op).begin(), all.end());
}

}  // namespace bubblesim::workload
