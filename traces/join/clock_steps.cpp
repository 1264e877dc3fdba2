// A clock that was set while it was recorded: undone by the clock pairs of the recording.
//
// Between two pairs the trace's clock goes as CLOCK_MONOTONIC does, or it was set. Set forward, it
// leaves out times that no record has, so that records of before and after can be told apart where
// the step is longer than the pairs are apart. Set back, it has times twice, and nothing tells
// which is meant.
#include <algorithm>
#include <vector>

#include "traces/join/join_parts.hpp"

namespace bubblesim::traces {
namespace {

/// Readings of clocks are microseconds apart; no clock is set for less than this.
constexpr Duration kLeastStep = std::chrono::milliseconds(1);

/// Times from `from` on are `ahead` of what they would be.
struct Step {
  TraceTime from;
  Duration ahead;
};

std::vector<Step> steps_of(RankTrace& trace) {
  std::ranges::stable_sort(trace.clocks, {}, &ClockPair::monotonic_ns);
  std::vector<Step> steps;
  Duration ahead{};
  for (std::size_t i = 1; i < trace.clocks.size(); ++i) {
    const ClockPair& before = trace.clocks[i - 1];
    const ClockPair& after = trace.clocks[i];
    const Duration passed{after.monotonic_ns - before.monotonic_ns};
    const Duration step = after.at - before.at - passed;
    if (step <= -kLeastStep) trace.counters.add(join::kClockSetBack);
    if (step < kLeastStep) continue;
    steps.push_back({before.at + std::min(step, passed) + Duration{1}, ahead += step});
  }
  return steps;
}

}  // namespace

void undo_clock_steps(RankTrace& trace) {
  const std::vector<Step> steps = steps_of(trace);
  if (steps.empty()) return;
  trace.counters.add(join::kClockSteps, steps.size());
  const auto move = [&steps](TraceTime& at) {
    const auto past = std::ranges::upper_bound(steps, at, {}, &Step::from);
    if (past != steps.begin()) at -= std::prev(past)->ahead;
  };
  const auto move_all = [&move](auto& records) {
    for (auto& record : records) {
      TraceTime end = record.start + record.duration;
      move(record.start), move(end);
      record.duration = end - record.start;
    }
  };
  move_all(trace.host_calls), move_all(trace.device_ops), move_all(trace.markers);
  move_all(trace.stalls), move_all(trace.notes);
  for (MemorySample& sample : trace.memory) move(sample.at);
  for (SyncRecord& sync : trace.syncs) move(sync.at);
  for (ClockPair& pair : trace.clocks) move(pair.at);
}

}  // namespace bubblesim::traces
