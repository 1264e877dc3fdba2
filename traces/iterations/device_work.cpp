#include "traces/iterations/device_work.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/nearest_rank.hpp"

namespace bubblesim::traces {
namespace {

constexpr CounterSpec kOutside{
    "iteration_ops_outside", Severity::kNotice,
    "device operations launched before the first iteration marker or after the last, or started "
    "there on a stream of which no launch is recorded; part of no iteration"};

std::uint32_t iteration_at(const RankPass& pass, TraceTime at) {
  const auto after = std::upper_bound(
      pass.recorded.begin(), pass.recorded.end(), at,
      [](TraceTime t, const RecordedIteration& iteration) { return t < iteration.host.begin; });
  if (after == pass.recorded.begin() || at >= pass.recorded.back().host.end) return kNone;
  return static_cast<std::uint32_t>(after - pass.recorded.begin() - 1);
}

// Operations by stream, in order of start.
std::vector<std::vector<std::uint32_t>> by_stream(const RankTrace& rank) {
  std::vector<std::vector<std::uint32_t>> ops(rank.streams.size());
  for (std::uint32_t i = 0; i < rank.device_ops.size(); ++i) {
    ops[rank.device_ops[i].stream.index()].push_back(i);
  }
  const auto starts_earlier = [&](std::uint32_t a, std::uint32_t b) {
    return rank.device_ops[a].start < rank.device_ops[b].start;
  };
  for (auto& stream : ops) {
    if (std::ranges::is_sorted(stream, starts_earlier)) continue;
    std::ranges::stable_sort(stream, starts_earlier);
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
    return std::any_of(stream.begin(), stream.end(),
                       [&](std::uint32_t op) { return rank_.device_ops[op].launch != kNone; });
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
