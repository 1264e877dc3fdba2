// A program: the repeatable work of one rank under other conditions.
//
// Host threads are lists of steps with think time between them; streams run device operations in
// launch order; edges, waits and collectives are the true dependencies. There are no start times:
// every delay is relative to the awaited event. A program is immutable and may be run by many runs
// at once; a run keeps its own state (sim/workload/program_run.hpp).
//
// Size: sizeof(Op) + sizeof(Step) <= 64 bytes a launched kernel; a run adds only pending work.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/time.hpp"
#include "sim/program/kernel_profile.hpp"
#include "sim/program/kinds.hpp"
#include "traces/intern.hpp"
#include "traces/trace.hpp"

namespace bubblesim::program {

/// No index.
inline constexpr std::uint32_t kNoIndex = std::numeric_limits<std::uint32_t>::max();

/// A span up to 4.29 s in 4 bytes. Builders split longer spans, or clamp and count them.
struct ShortSpan {
  std::uint32_t nanoseconds = 0;
  [[nodiscard]] constexpr Duration duration() const { return Duration{nanoseconds}; }
};
inline constexpr Duration kLongestShortSpan{std::numeric_limits<std::uint32_t>::max()};
/// Clamps to [0, kLongestShortSpan].
[[nodiscard]] constexpr ShortSpan short_span(Duration span) {
  return {static_cast<std::uint32_t>(std::clamp(span, Duration{}, kLongestShortSpan).count())};
}

/// A device operation.
struct Op {
  Duration duration{};       ///< alone on the GPU; a joined collective: from the last rank's
                             ///< arrival to this rank's end
  ShortSpan launch_lag;      ///< earliest start after the launching call's start
  ShortSpan gap;             ///< earliest start after the end of the stream's previous operation
  std::uint32_t profile = kNoIndex;     ///< into Program::profiles; copies and memsets: none
  NameId name{};
  std::uint32_t first_edge = 0;         ///< into Program::edges
  std::uint32_t collective = kNoIndex;  ///< where a run keeps its end, if any step waits for it
  std::uint32_t result_slot = kNoIndex; ///< where a run keeps its end, if anything waits for it
  std::uint16_t stream = 0;
  std::uint8_t edge_count = 0;
  WorkKind kind = WorkKind::kKernel;
};

/// An operation may start `lag` after `before` has ended.
struct OpEdge {
  std::uint32_t before = 0;
  ShortSpan lag;
  std::uint32_t passes_back = 0;  ///< which earlier pass; no wait before the first pass
};

enum class StepKind : std::uint8_t {
  kPause,        ///< waits for its think time only
  kLaunch,       ///< launches `count` operations from `target` on
  kLaunchAndWait,///< launches, and returns when the last of them has ended
  kWaitStream,   ///< returns when all work launched on stream `target` has ended
  kWaitDevice,   ///< returns when all work launched by the rank has ended
  kWaitOp,       ///< returns when operation `target` has ended, of this pass or an earlier one
                 ///< (StepDetail::passes_back)
  kIteration,    ///< an iteration begins here; `target` is its number within the pass
  kEnd,          ///< the last step of the marked thread: the pass's last iteration ends here
};

/// An action of a host thread.
struct Step {
  ShortSpan think{};  ///< before the step, after the previous one or the awaited work
  ShortSpan cost{};   ///< of the call itself, without waiting
  std::uint32_t target = 0;
  std::uint32_t detail = kNoIndex;  ///< into Program::details
  std::uint16_t count = 0;          ///< kLaunch, kLaunchAndWait: operations launched
  StepKind kind = StepKind::kPause;
};

/// Rare parts of a step: a wait's return, or a hand-over from another thread.
struct StepDetail {
  ShortSpan return_lag;                   ///< from the end of the awaited work to the call's return
  std::uint32_t after_thread = kNoIndex;  ///< thread whose step `after_step` must end before think
                                          ///< starts
  std::uint32_t after_step = 0;           ///< that thread's step, in the same pass
  std::uint32_t passes_back = 0;          ///< kWaitOp: which earlier pass; no wait before the first
                                          ///< pass
  /// The thread's rank, into JobProgram::ranks: of the same process, on another GPU; kNoIndex: this
  /// one.
  std::uint32_t after_rank = kNoIndex;
  std::uint32_t after_passes_back = 0;    ///< of an earlier pass; before the first: no wait

  /// Without other ranks no step of theirs is waited for.
  void leave_ranks() {
    if (after_rank == kNoIndex) return;
    after_rank = after_thread = kNoIndex;
    after_passes_back = 0;
  }
};

struct ThreadProgram {
  std::string name;
  std::vector<Step> steps;
};

static_assert(sizeof(Op) + sizeof(Step) <= 64);

/// From the start of an operation on, the rank holds this many bytes of device memory.
struct MemoryMark {
  std::uint32_t op = 0;     ///< into Program::ops
  std::uint64_t bytes = 0;
};

/// A collective's behaviour while its context is switched out. NCCL's waits, since frozen blocks
/// copy nothing. A stand-in on a real GPU goes on: it ends at a set time (stand_in_kernels.cu).
enum class SwitchedOut : std::uint8_t { kWaits, kGoesOn };

/// One rank's program. Its iterations are numbered from 0 within a pass.
struct Program {
  std::uint32_t rank = 0;
  std::vector<ThreadProgram> threads;
  std::vector<Op> ops;                ///< in launch order of the recorded pass
  std::vector<OpEdge> edges;
  std::vector<StepDetail> details;
  std::vector<KernelProfile> profiles;
  std::vector<traces::LaunchShape> shapes;  ///< one for each of `profiles`; or empty: not known
  std::vector<MemoryMark> memory;     ///< in the order of `ops`; empty: not known
  std::uint32_t result_slots = 0;     ///< operations that steps wait for
  std::uint16_t stream_count = 0;
  std::uint32_t iterations = 1;       ///< of a pass; at least 1
  std::uint32_t marked_thread = 0;    ///< the thread with kIteration and kEnd steps
  bool marked = true;                 ///< iterations are; else a whole recording is taken as one
  bool overruns = false;              ///< operations ran into the next pass, and delay it
  std::uint64_t ops_without_launch = 0;  ///< of `ops`: none was recorded
  /// Recorded durations include the contention of the rank's own kernels; modelled ones are those
  /// of a kernel alone, so that kernels of different streams compete.
  OwnKernels own_kernels = OwnKernels::kAsRecorded;
  SwitchedOut collectives = SwitchedOut::kWaits;
  Duration start_offset{};            ///< the rank's recording began this long after the job's
  Duration recorded_span{};           ///< of the pass, as recorded
  Duration recorded_device_span{};    ///< first start to last end of the pass's operations
  std::vector<Duration> recorded_iterations;  ///< as recorded, one for each iteration
  traces::StringTable names;
  CounterSet counters;
};

}  // namespace bubblesim::program
