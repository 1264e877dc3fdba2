// Which iterations of a recording count, which device work belongs to them, and how long they take
// as they repeat. `inspect`, `inspect --replay` and `run` all ask here, so that they mean the same.
//
// Recorded iterations run from one iteration marker's start to the next one's, the last one to its
// marker's end (host time, of the thread that has most markers). If nothing is marked, the
// recording is one iteration: from its first launch or synchronisation to the return of its last
// one (synchronisations count while there is device work that they could wait for), or to the end
// of operations that start later on streams without a recorded launch; if no launch is recorded at
// all, from the first operation at the latest.
//
// Device work belongs to an iteration by, in this order:
//   1. correlation: the iteration during which its launch was called;
//   2. order on the stream: without a recorded launch, the iteration of the launched operations
//      around it;
//   3. periodicity, between two iterations or before the first: that of the two which has fewer of
//      its kernel than the median iteration, the earlier one first; if neither has, the earlier.
//      Before the first launched operation of a stream that is none: it was queued before the
//      window;
//   4. time: on a stream of which no launch is recorded at all, the iteration that was under way
//      when it started, if the rank's own work had begun.
// What belongs to none is dropped and counted.
//
// Iterations of different ranks are one by their number. If numbers start again (steps counted anew
// in each epoch), they are one by epoch and number: those of the first restart on all ranks are one
// epoch, or, if a rank then shares more with the first rank, an epoch apart (of equals, the rank's
// window opened later). If no number is on all ranks and all recorded equally many, they are one by
// place. So a number may name several iterations; a choice of it means all.
//
// Used are the iterations that are settled (marked_iterations.hpp says which are not, and why), of
// those the longest run of neighbours, of equals the last; the same on all ranks. They are the
// *pass*.
//
// A wait for work from before the window is not part of a pass: a synchronising call in which none
// of the pass's work runs, while earlier work does or none of the pass's has begun, takes no time;
// nor does a launch while a queue full of such work holds it (before_window.hpp). Nor is the first
// iteration's wait for ranks that began it later (before_window.hpp).
//
// The length of a pass is the slower of two stages of a pipeline, the host and the device: the
// host's time from the first marker to the last one's end without waits as above, and the device's
// from the end of what came before (or its first start, if nothing did) to the end of the pass's
// work. Ranks that meet in collectives go at one pace: the slowest one's.
//
// Times are recorded time on the job's clock. O(n log n) in the job's records.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "traces/iterations/intervals.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

// Which iterations of a recording a user asks for.

struct IterationChoice {
  enum class Kind : std::uint8_t {
    kSettled,  ///< all but warm-up
    kAll,      ///< whatever was recorded
    kRange,    ///< from `first` to `last`
  };
  Kind kind = Kind::kSettled;
  std::int64_t first = 0;  ///< numbers of markers; of recordings without numbers, places from 0 on
  std::int64_t last = 0;   ///< >= first
  friend bool operator==(const IterationChoice&, const IterationChoice&) = default;
};

/// "settled", "all", "7" or "5-9". Fault: anything else.
[[nodiscard]] Result<IterationChoice> parse_iteration_choice(std::string_view text);
/// What parse_iteration_choice reads.
[[nodiscard]] std::string iteration_choice_text(const IterationChoice& choice);

/// Why an iteration is part of the pass, or is not.
enum class IterationUse : std::uint8_t {
  kUsed,
  kFirst,          ///< the window may have cut it, and work from before it runs in it
  kFewOperations,  ///< the window has cut its device work
  kAllocations,    ///< a storm of device allocations
  kNewKernels,     ///< kernels that no later iteration launches: autotuning
  kSlowStart,      ///< far slower than those after it
  kNotOnAllRanks,  ///< another rank has not recorded it
  kApart,          ///< settled, but not beside the iterations that are used
  kNotChosen,      ///< the user chose others
};

/// snake_case: "first".
[[nodiscard]] std::string_view iteration_use_name(IterationUse use);
/// The name for people: "the window's first".
[[nodiscard]] std::string_view iteration_use_label(IterationUse use);

struct RecordedIteration {
  std::int64_t number = 0;  ///< of its marker, not unique; without one, its place from 0 on
  Interval host;
  std::uint64_t operations = 0;
  IterationUse use = IterationUse::kUsed;
};

/// The pass of one rank.
struct RankPass {
  bool marked = false;
  std::uint32_t thread = 0;  ///< whose iterations these are, into threads; their number: none
  std::vector<RecordedIteration> recorded;
  std::size_t first = 0;     ///< of `recorded` that is used
  std::size_t count = 0;     ///< that are used, one after another; 0 without any device operation
  std::vector<std::uint32_t> iteration_of;  ///< by device operation, into `recorded`; or kNone
  Duration host_ahead{};     ///< of the device's clock (host_clock.hpp)
  /// By device operation: how much later than recorded it runs, at the end of the pass, as it was
  /// queued before the recording (before_window.hpp); empty: none was.
  std::vector<Duration> kept;
  Interval host;             ///< of the iterations used, as recorded
  Intervals waits;           ///< host time for work from before the pass; part of `host`
  Duration host_time{};      ///< `host` without `waits`
  Duration device_time{};
  Duration length{};         ///< of the pass as it repeats; at least both of these
  bool queue_cut = false;           ///< lacks what was queued before the recording (kQueueCut)
  bool start_skew_unknown = false;  ///< may hold waits for late ranks (kStartSkewUnknown)
  CounterSet counters;

  [[nodiscard]] bool holds_op(std::size_t op) const {
    return iteration_of[op] != kNone && iteration_of[op] - first < count;
  }
  [[nodiscard]] bool holds_call(TraceTime start) const {
    return start >= host.begin && start < host.end;
  }
  /// The instant of the pass without `waits`: what lies before a wait moves towards its end. By the
  /// host's clock, as `host` and `waits`.
  [[nodiscard]] TraceTime without_waits(TraceTime at) const;
  /// The same of an operation and the device's clock.
  [[nodiscard]] TraceTime ran_without_waits(std::size_t op, TraceTime at) const {
    return without_waits(at + later(op) + host_ahead) - host_ahead;
  }
  /// How much later than recorded the operation is in the pass.
  [[nodiscard]] Duration later(std::size_t op) const {
    return kept.empty() ? Duration{} : kept[op];
  }
  /// Mean of the pass's iterations as they repeat; 0 without any.
  [[nodiscard]] Duration iteration_time() const;
};

/// The pass of a job, by position of the rank.
struct JobPass {
  std::vector<RankPass> ranks;

  /// Mean over ranks.
  [[nodiscard]] Duration iteration_time() const;
  /// Most of any rank.
  [[nodiscard]] std::size_t iterations_recorded() const;
  [[nodiscard]] std::size_t iterations_used() const;
  /// "4 recorded, 3 used (1 to 3); left out: 0 (the window's first)".
  [[nodiscard]] std::string text() const;
};

/// Fault: no rank has recorded an iteration that the choice names; says which there are.
[[nodiscard]] Result<JobPass> find_job_pass(const JobTrace& job,
                                            const IterationChoice& choice = {});
/// Finds the pass of one rank by itself.
[[nodiscard]] Result<RankPass> find_rank_pass(const RankTrace& rank,
                                              const IterationChoice& choice = {});

/// A pass of one iteration: of those in `pass` the one of median host time, the shorter of two
/// middle ones, the first of equals.
[[nodiscard]] RankPass median_iteration(const RankTrace& rank, const RankPass& pass);

/// The pass as it repeats, as a recording of two passes or more (calls and device operations, no
/// markers and no samples), without waits for earlier work: in `window`, one pass long, each
/// operation of the pass runs once, though not all in the same pass.
struct RepeatedTrace {
  RankTrace trace;
  Interval window;
};
[[nodiscard]] RepeatedTrace repeated_trace(const RankTrace& rank, const RankPass& pass);

}  // namespace bubblesim::traces
