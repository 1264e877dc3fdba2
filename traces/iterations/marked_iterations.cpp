#include "traces/iterations/marked_iterations.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/nearest_rank.hpp"
#include "traces/sort_records.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::traces {
namespace {

// Iterations from markers, or one of everything; definitions in job_pass.hpp.

constexpr CounterSpec kMarkersLeftOut{
    "iteration_markers_left_out", Severity::kNotice,
    "iteration markers on other threads than the one whose markers were used, or that start "
    "together with one that was"};

constexpr CounterSpec kNumbersAgain{
    "iteration_numbers_start_again", Severity::kNotice,
    "iteration markers whose number is not above that of the one before: steps counted anew in "
    "each epoch; a number then names an iteration of each"};

constexpr Duration kShortest{1};

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
  std::ranges::stable_sort(markers, {}, &Marker::start);
  markers.erase(std::ranges::unique(markers, {}, &Marker::start).begin(), markers.end());
  if (found > markers.size()) counters.add(kMarkersLeftOut, found - markers.size());
  return markers;
}

TraceTime last_end(const RankTrace& rank) {
  TraceTime end = TraceTime::min();
  for (const DeviceOp& op : rank.device_ops) end = std::max(end, op.end());
  return end;
}

void add_marked(const RankTrace& rank, const std::vector<const Marker*>& markers,
                RankPass& pass) {
  const bool numbered =
      std::ranges::all_of(markers, [](const Marker* marker) { return marker->number >= 0; });
  for (std::size_t i = 0; i < markers.size(); ++i) {
    const Marker& marker = *markers[i];
    TraceTime end = marker.start + std::max(marker.duration, Duration{});
    if (i + 1 < markers.size()) {
      end = markers[i + 1]->start;
    } else if (marker.duration <= Duration{}) {
      end = std::max(end, last_end(rank));
    }
    const std::int64_t number = numbered ? marker.number : static_cast<std::int64_t>(i);
    if (i > 0 && number <= pass.recorded.back().number) pass.counters.add(kNumbersAgain);
    pass.recorded.push_back({number, {marker.start, end}});
  }
  pass.thread = markers.front()->thread.value;
}

// Thread that calls most.
std::uint32_t busiest_thread(const RankTrace& rank) {
  std::vector<std::size_t> calls(rank.threads.size() + 1);
  for (const HostCall& call : rank.host_calls) ++calls[call.thread.index()];
  const auto most = std::ranges::max_element(calls);
  return static_cast<std::uint32_t>(rank.host_calls.empty() ? rank.threads.size()
                                                            : most - calls.begin());
}

constexpr Interval kNothing{TraceTime::max(), TraceTime::min()};

// From the first launch or synchronisation to the return of the last. Half-open, so that it holds a
// last call without length too.
Interval calls_span(const RankTrace& rank) {
  Interval span = kNothing;
  const TraceTime work_ends = last_end(rank);
  for (const HostCall& call : rank.host_calls) {
    const bool launches = is_launch(call.kind);
    if (!launches && (!is_synchronisation(call.kind) || call.start >= work_ends)) continue;
    span.begin = std::min(span.begin, call.start);
    const TraceTime end = launches ? call.end() : std::min(call.end(), work_ends);
    span.end = std::max({span.end, end, call.start + kShortest});
  }
  return span;
}

// What the host says of it, and the device where no launch does: operations of streams without any
// belong by when they start, the last of them after the last call perhaps, and,
// where no stream has any, the first of them before the first call.
Interval everything(const RankTrace& rank) {
  const Interval calls = calls_span(rank);
  const bool called = calls != kNothing;
  const std::vector<bool> launched = streams_with_launch(rank);
  const bool any_launch = std::ranges::find(launched, true) != launched.end();
  Interval span = calls;
  for (const DeviceOp& op : rank.device_ops) {
    if (called && launched[op.stream.index()]) continue;
    if (!called || !any_launch) span.begin = std::min(span.begin, op.start);
    if (op.start < calls.end) continue;
    span.end = std::max({span.end, op.end(), op.start + kShortest});
  }
  return span;
}

}  // namespace

std::vector<bool> streams_with_launch(const RankTrace& rank) {
  std::vector<bool> launched(rank.streams.size());
  for (const DeviceOp& op : rank.device_ops) {
    if (op.launch != kNone) launched[op.stream.index()] = true;
  }
  return launched;
}

void find_recorded(const RankTrace& rank, RankPass& pass) {
  const std::vector<const Marker*> markers = iteration_markers(rank, pass.counters);
  pass.marked = !markers.empty();
  if (pass.marked) {
    add_marked(rank, markers, pass);
    return;
  }
  pass.thread = busiest_thread(rank);
  if (!rank.device_ops.empty()) pass.recorded.push_back({0, everything(rank)});
}

namespace {

constexpr std::int64_t kPercentMatters = 5;
constexpr std::int64_t kPercentSlow = 50;

bool matters(Duration part, Duration whole) { return 100 * part > kPercentMatters * whole; }

void leave_out(RecordedIteration& iteration, IterationUse why) {
  if (iteration.use == IterationUse::kUsed) iteration.use = why;
}

void leave_out_cut(RankPass& pass) {
  std::vector<std::uint64_t> counts;
  for (const RecordedIteration& iteration : pass.recorded) counts.push_back(iteration.operations);
  const std::uint64_t usual = upper_median(counts);
  for (RecordedIteration& iteration : pass.recorded) {
    if (2 * iteration.operations < usual) leave_out(iteration, IterationUse::kFewOperations);
  }
}

struct Allocations {
  std::uint64_t calls = 0;
  Duration time{};
};

std::vector<Allocations> allocations_of(const RankTrace& rank, const RankPass& pass) {
  std::vector<Allocations> sums(pass.recorded.size());
  std::size_t at = 0;
  for (const HostCall& call : rank.host_calls) {  // sorted by start
    if (call.kind != HostCallKind::kAlloc && call.kind != HostCallKind::kFree) continue;
    while (at < sums.size() && pass.recorded[at].host.end <= call.start) ++at;
    if (at == sums.size()) break;
    if (call.start < pass.recorded[at].host.begin) continue;
    ++sums[at].calls;
    sums[at].time += call.duration;
  }
  return sums;
}

void leave_out_storms(const RankTrace& rank, RankPass& pass) {
  const std::vector<Allocations> sums = allocations_of(rank, pass);
  std::vector<std::uint64_t> calls;
  Duration least = Duration::max();
  for (const Allocations& sum : sums) {
    calls.push_back(sum.calls);
    least = std::min(least, sum.time);
  }
  const std::uint64_t usual = upper_median(calls);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    RecordedIteration& iteration = pass.recorded[i];
    if (sums[i].calls <= 2 * usual) continue;
    if (!matters(sums[i].time - least, iteration.host.length())) continue;
    leave_out(iteration, IterationUse::kAllocations);
  }
}

// By iteration: whether kernels matter that no later one launches.
std::vector<bool> have_own_kernels(const RankTrace& rank, const RankPass& pass) {
  std::vector<std::uint32_t> last_seen(rank.names.size(), 0);  // by name: the last iteration
  const auto each_kernel = [&](const auto& visit) {
    for (std::size_t i = 0; i < rank.device_ops.size(); ++i) {
      const DeviceOp& op = rank.device_ops[i];
      const std::uint32_t iteration = pass.iteration_of[i];
      if (iteration == kNone || op.kind != DeviceOpKind::kKernel) continue;
      visit(iteration, op);
    }
  };
  each_kernel([&](std::uint32_t iteration, const DeviceOp& op) {
    last_seen[op.name.index()] = std::max(last_seen[op.name.index()], iteration);
  });
  std::vector<Duration> all(pass.recorded.size());
  std::vector<Duration> never_again(pass.recorded.size());
  each_kernel([&](std::uint32_t iteration, const DeviceOp& op) {
    all[iteration] += op.duration;
    if (last_seen[op.name.index()] == iteration) never_again[iteration] += op.duration;
  });
  std::vector<bool> result(pass.recorded.size());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = matters(never_again[i], all[i]);
  return result;
}

bool is_slow_start(const RankPass& pass, std::size_t iteration) {
  std::vector<Duration> later;
  for (std::size_t i = iteration + 1; i < pass.recorded.size(); ++i) {
    later.push_back(pass.recorded[i].host.length());
  }
  const Duration usual = upper_median(later);
  return 100 * (pass.recorded[iteration].host.length() - usual) > kPercentSlow * usual;
}

// From the first iteration that is like those after it, all are settled.
void leave_out_start(const RankTrace& rank, RankPass& pass) {
  const std::vector<bool> own_kernels = have_own_kernels(rank, pass);
  for (std::size_t i = 0; i + 1 < pass.recorded.size(); ++i) {
    RecordedIteration& iteration = pass.recorded[i];
    if (own_kernels[i]) leave_out(iteration, IterationUse::kNewKernels);
    if (is_slow_start(pass, i)) leave_out(iteration, IterationUse::kSlowStart);
    if (iteration.use == IterationUse::kUsed) return;
  }
}

}  // namespace

void find_warm_up(const RankTrace& rank, RankPass& pass) {
  if (pass.recorded.size() < 2) return;
  pass.recorded.front().use = IterationUse::kFirst;
  if (rank.provenance.format == kMadeFormat) return;
  leave_out_cut(pass);
  leave_out_storms(rank, pass);
  leave_out_start(rank, pass);
}

namespace {

constexpr CounterSpec kOutside{
    "iteration_ops_outside", Severity::kNotice,
    "device operations launched before the first iteration marker or after the last, or started "
    "there on a stream of which no launch is recorded; part of no iteration"};

std::uint32_t iteration_at(const RankPass& pass, TraceTime at) {
  const auto after = std::ranges::upper_bound(
      pass.recorded, at, {},
      [](const RecordedIteration& iteration) { return iteration.host.begin; });
  if (after == pass.recorded.begin() || at >= pass.recorded.back().host.end) return kNone;
  return static_cast<std::uint32_t>(after - pass.recorded.begin() - 1);
}

// Operations by stream, in order of start.
std::vector<std::vector<std::uint32_t>> by_stream(const RankTrace& rank) {
  std::vector<std::vector<std::uint32_t>> ops(rank.streams.size());
  for (std::uint32_t i = 0; i < rank.device_ops.size(); ++i) {
    ops[rank.device_ops[i].stream.index()].push_back(i);
  }
  for (auto& stream : ops) {
    sort_stably(stream, [&](std::uint32_t a, std::uint32_t b) {
      return rank.device_ops[a].start < rank.device_ops[b].start;
    });
  }
  return ops;
}

constexpr std::uint32_t kUnsure = kNone - 1;

/// What iterations launch on one stream, as far as it is sure, and what they usually do: how often
/// each kernel comes in the median iteration.
class Sequence {
 public:
  Sequence(const RankTrace& rank, std::size_t iterations)
      : rank_(rank), iterations_(iterations) {}

  void add(std::uint32_t op, std::uint32_t iteration) {
    if (iteration >= kUnsure) return;
    auto& counts = counts_[rank_.device_ops[op].name];
    counts.resize(iterations_);
    ++counts[iteration];
  }

  /// Whether `iteration` has fewer of the operation's kind than usual.
  [[nodiscard]] bool lacks(std::uint32_t iteration, std::uint32_t op) const {
    const auto found = counts_.find(rank_.device_ops[op].name);
    if (iteration >= kUnsure || found == counts_.end()) return false;
    return found->second[iteration] < upper_median(found->second);
  }

 private:
  const RankTrace& rank_;
  std::size_t iterations_;
  std::map<NameId, std::vector<std::uint64_t>> counts_;
};

class Assignment {
 public:
  Assignment(const RankTrace& rank, RankPass& pass) : rank_(rank), pass_(pass) {
    pass.iteration_of.assign(rank.device_ops.size(), kNone);
  }

  void run() {
    const auto streams = by_stream(rank_);
    for (const auto& stream : streams) by_launch(stream);
    for (const auto& stream : streams) {
      if (!has_launch(stream)) by_time(stream);
    }
    for (const std::uint32_t iteration : pass_.iteration_of) {
      if (iteration != kNone) ++pass_.recorded[iteration].operations;
    }
    pass_.counters.add(kQueuedBefore, queued_before_);
    pass_.counters.add(kOutside, outside_);
  }

 private:
  [[nodiscard]] bool has_launch(const std::vector<std::uint32_t>& stream) const {
    return std::ranges::any_of(
        stream, [&](std::uint32_t op) { return rank_.device_ops[op].launch != kNone; });
  }

  void by_launch(const std::vector<std::uint32_t>& stream) {
    if (!has_launch(stream)) return;
    const std::vector<std::uint32_t> sure = between_launches(stream);
    Sequence sequence(rank_, pass_.recorded.size());
    if (std::ranges::find(sure, kUnsure) != sure.end()) {  // else it is not asked
      for (std::size_t i = 0; i < stream.size(); ++i) sequence.add(stream[i], sure[i]);
    }
    for (std::size_t i = 0; i < stream.size();) {
      if (sure[i] != kUnsure) {
        if (sure[i] == kNone) ++outside_;
        give(stream[i], sure[i]);
        ++i;
        continue;
      }
      std::size_t end = i;
      while (end < stream.size() && sure[end] == kUnsure) ++end;
      divide(stream, {i, end}, i == 0 ? kNone : sure[i - 1],
             end == stream.size() ? kNone : sure[end], sequence);
      if (i == 0) count_before(stream, end);
      i = end;
    }
  }

  // By operation of the stream: its launch's iteration, or that of both its neighbours with
  // launches; kUnsure between different ones and before the first.
  [[nodiscard]] std::vector<std::uint32_t> between_launches(
      const std::vector<std::uint32_t>& stream) const {
    std::vector<std::uint32_t> iterations(stream.size(), kUnsure);
    std::size_t last = stream.size();
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const std::uint32_t launch = rank_.device_ops[stream[i]].launch;
      if (launch == kNone) continue;
      iterations[i] = iteration_at(pass_, rank_.host_calls[launch].start);
      if (last < i && iterations[last] == iterations[i]) {
        std::fill(iterations.begin() + static_cast<std::ptrdiff_t>(last),
                  iterations.begin() + static_cast<std::ptrdiff_t>(i), iterations[i]);
      }
      last = i;
    }
    return iterations;
  }

  // Operations [i, end) of a stream lie between those of two iterations. The first go with `before`
  // and the last with `after` as long as these lack them; what is left goes with `before`.
  void divide(const std::vector<std::uint32_t>& stream, std::pair<std::size_t, std::size_t> span,
              std::uint32_t before, std::uint32_t after, Sequence& sequence) {
    auto [begin, end] = span;
    while (begin < end && sequence.lacks(before, stream[begin])) {
      sequence.add(stream[begin], before);
      give(stream[begin++], before);
    }
    while (begin < end && sequence.lacks(after, stream[end - 1])) {
      sequence.add(stream[end - 1], after);
      give(stream[--end], after);
    }
    for (; begin < end; ++begin) {
      if (before == kNone && span.first > 0) ++outside_;
      give(stream[begin], before);
    }
  }

  void count_before(const std::vector<std::uint32_t>& stream, std::size_t end) {
    for (std::size_t i = 0; i < end; ++i) {
      if (pass_.iteration_of[stream[i]] == kNone) ++queued_before_;
    }
  }

  void by_time(const std::vector<std::uint32_t>& stream) {
    for (const std::uint32_t index : stream) {
      const TraceTime start = rank_.device_ops[index].start;
      const bool begun = !any_own_ || start >= first_own_;
      const std::uint32_t iteration = begun ? iteration_at(pass_, start) : kNone;
      if (iteration == kNone) ++(begun ? outside_ : queued_before_);
      pass_.iteration_of[index] = iteration;
    }
  }

  void give(std::uint32_t op, std::uint32_t iteration) {
    pass_.iteration_of[op] = iteration;
    if (iteration == kNone) return;
    const TraceTime start = rank_.device_ops[op].start;
    first_own_ = any_own_ ? std::min(first_own_, start) : start;
    any_own_ = true;
  }

  const RankTrace& rank_;
  RankPass& pass_;
  bool any_own_ = false;
  TraceTime first_own_{};  ///< of launched operations that belong to an iteration
  std::uint64_t queued_before_ = 0;
  std::uint64_t outside_ = 0;
};

}  // namespace

void assign_device_work(const RankTrace& rank, RankPass& pass) { Assignment(rank, pass).run(); }

}  // namespace bubblesim::traces
