// When the operations and calls of a program start and end: the rules that all ways of running a
// program share. An event-driven run, the recurrence, the fake GPU and the processes on a real GPU
// differ only in their clocks.
//
// `Time` is a clock's time point.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "sim/base/time.hpp"
#include "sim/program/program.hpp"

namespace bubblesim::program {

/// Launch calls that may be pending on a stream before the launching thread must wait. CUDA's own
/// channel takes about a thousand (measured by others as 1,022-1,024 launches).
inline constexpr std::size_t kLaunchQueueDepth = 1024;

/// The longest time that hardware takes to start an operation after its launch or after the end of
/// its predecessor.
inline constexpr Duration kLongestLag = std::chrono::microseconds(20);

/// Whether a launch step takes a place in its stream's queue. A graph takes one place, however many
/// operations it has; a step without cost is not a call and takes none.
[[nodiscard]] constexpr bool takes_place(const Step& step) { return step.cost.nanoseconds > 0; }

/// When an operation may start, as far as known.
template <class Time>
struct OpStart {
  Time at = Time::max();         ///< max(): the earlier operation of an edge has not ended
  const OpEdge* open = nullptr;  ///< the first edge whose earlier operation has not ended
};

/// An operation starts once it is `ready` (its launch lag has passed since its call), its gap has
/// passed since the end of its stream's previous operation, and for each edge the edge's lag has
/// passed since the end of OpEdge::before. `end_of(edge)` is that end; Time::max(): the operation
/// has not ended; Time::min(): there is no operation to wait for.
template <class Time, class EndOf>
[[nodiscard]] OpStart<Time> start_of(const Program& program, const Op& op, Time ready,
                                     const std::optional<Time>& stream_end, const EndOf& end_of) {
  Time start = ready;
  if (stream_end) start = std::max(start, *stream_end + op.gap.duration());
  for (std::uint32_t i = 0; i < op.edge_count; ++i) {
    const OpEdge& edge = program.edges[op.first_edge + i];
    const Time end = end_of(edge);
    if (end == Time::max()) return {end, &edge};
    start = std::max(start, end + edge.lag.duration());
  }
  return {start, nullptr};
}

/// The duration of an operation that is slowed down by `factor`, which collectives ignore.
[[nodiscard]] inline Duration duration_of(const Op& op, double factor) {
  return op.kind == WorkKind::kCollective || factor == 1.0 ? op.duration
                                                           : scale(op.duration, factor);
}

enum class AwaitedKind : std::uint8_t {
  kNothing,
  kStream,  ///< all work launched on stream `index`
  kDevice,  ///< all work launched by the rank
  kOp,      ///< operation `index`
};

/// The work that a call waits for before it returns.
struct Awaited {
  AwaitedKind kind = AwaitedKind::kNothing;
  std::uint32_t index = 0;
  std::uint32_t passes_back = 0;  ///< kOp: how many passes earlier; no wait before the first pass
};

[[nodiscard]] inline Awaited awaited_by(const Program& program, const Step& step) {
  switch (step.kind) {
    case StepKind::kLaunchAndWait:
      return {AwaitedKind::kStream, program.ops[step.target + step.count - 1].stream};
    case StepKind::kWaitStream: return {AwaitedKind::kStream, step.target};
    case StepKind::kWaitDevice: return {AwaitedKind::kDevice};
    case StepKind::kWaitOp:
      return {AwaitedKind::kOp, step.target,
              step.detail == kNoIndex ? 0 : program.details[step.detail].passes_back};
    default: return {};
  }
}

/// A wait in `pass` (from 0) for an operation's end `passes_back` passes earlier is over once the
/// operation has ended this often.
[[nodiscard]] constexpr std::uint64_t ends_needed(std::uint32_t passes_back, std::uint64_t pass) {
  return pass + 1 - std::min<std::uint64_t>(pass + 1, passes_back);
}

/// The time from the end of the awaited work to the return of the step's call. There is no such lag
/// if the work had ended before the call.
[[nodiscard]] inline Duration return_lag(const Program& program, const Step& step) {
  return step.detail == kNoIndex ? Duration{} : program.details[step.detail].return_lag.duration();
}

/// The hand-over from which the step's think time counts; null: the end of the thread's last step.
[[nodiscard]] inline const StepDetail* hand_over(const Program& program, const Step& step) {
  if (step.detail == kNoIndex) return nullptr;
  const StepDetail& detail = program.details[step.detail];
  return detail.after_thread == kNoIndex ? nullptr : &detail;
}

/// How many steps the other thread must have done, over all passes, before a hand-over in `pass`
/// (from 0). `program`: the other thread's.
[[nodiscard]] inline std::uint64_t steps_needed(const Program& program, const StepDetail& after,
                                                std::uint64_t pass) {
  if (pass < after.after_passes_back) return 0;
  return (pass - after.after_passes_back) * program.threads[after.after_thread].steps.size() +
         after.after_step + 1;
}

/// When the next pass starts after a pass from `begin` to `end`: at least a nanosecond after
/// `begin`, so that an empty program cannot stop the clock.
template <class Time>
[[nodiscard]] constexpr Time next_pass(Time begin, Time end) {
  return std::max(end, begin + Duration{1});
}

}  // namespace bubblesim::program
