// Decides which iterations of a recording count, which device work belongs to them, and their
// length when repeated. `inspect`, `inspect --replay` and `run` all use this, so that they agree.
//
// Recorded iterations run from one iteration marker's start to the next one's, the last one to its
// marker's end (host time, of the thread that has most markers). If nothing is marked, the
// recording is one iteration: from its first launch or synchronisation to the return of its last
// one (synchronisations count while device work is pending), or to the end of operations that start
// later on streams without a recorded launch; if no launch is recorded at all, from the first
// operation at the latest.
//
// Device work belongs to an iteration by, in this order:
//   1. correlation: the iteration during which its launch was called;
//   2. order on the stream: without a recorded launch, the iteration of the launched operations
//      around it;
//   3. periodicity, between two iterations or before the first: the earlier of the two, unless the
//      later one alone has fewer such kernels than the median iteration. Before the first launched
//      operation of a stream: none, since it was queued before the window;
//   4. time: on a stream without any recorded launch, the iteration under way at its start, if the
//      rank's own work had begun.
// Work of no iteration is dropped and counted.
//
// Iterations of different ranks are matched by their number. If numbers restart (steps counted in
// each epoch), they are matched by epoch and number. A rank's first restart begins the same epoch
// as the first rank's or, if the two then share more iterations, the next or the previous one (of
// equals the next: the rank's window opened later). If no number is on all ranks and all recorded
// equally many, iterations are matched by position. So a number may name several iterations; a
// choice of it means all of them.
//
// The longest run of settled neighbours is used, of equals the last; the same on all ranks.
// (marked_iterations.hpp has the rules for settled iterations.) They are the *pass*.
//
// A wait for work from before the window is not part of a pass: a synchronising call in which none
// of the pass's work runs, while earlier work does or none of the pass's has begun, takes no time;
// nor does a launch while a queue full of such work holds it. The first iteration's wait for ranks
// that began it later is not part of a pass, either (before_window.hpp).
//
// The length of a pass is the slower of two stages of a pipeline, the host and the device: the
// host's time from the first marker to the last one's end without waits as above, and the device's
// time from the end of earlier work (else from its first start) to the end of the pass's work.
// Ranks that meet in collectives have one pace: the slowest one's.
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

// A user's choice of a recording's iterations.

struct IterationChoice {
  enum class Kind : std::uint8_t {
    kSettled,  ///< all but warm-up
    kAll,      ///< all recorded
    kRange,    ///< from `first` to `last`
  };
  Kind kind = Kind::kSettled;
  std::int64_t first = 0;  ///< numbers of markers; of recordings without numbers, places from 0 on
  std::int64_t last = 0;   ///< >= first
  friend bool operator==(const IterationChoice&, const IterationChoice&) = default;
};

/// "settled", "all", "7" or "5-9". Fault: anything else.
[[nodiscard]] Result<IterationChoice> parse_iteration_choice(std::string_view text);
/// The text that parse_iteration_choice reads.
[[nodiscard]] std::string iteration_choice_text(const IterationChoice& choice);

/// Why an iteration is or is not part of the pass.
enum class IterationUse : std::uint8_t {
  kUsed,
  kFirst,          ///< the window may have cut it, and earlier work runs in it
  kFewOperations,  ///< the window has cut its device work
  kAllocations,    ///< a storm of device allocations
  kNewKernels,     ///< kernels that no later iteration launches: autotuning
  kSlowStart,      ///< far slower than later ones
  kNotOnAllRanks,  ///< another rank has not recorded it
  kApart,          ///< settled, but not next to the iterations used
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
  std::uint32_t thread = 0;  ///< of these iterations, an index into the rank's threads; their
                             ///< count: none
  std::vector<RecordedIteration> recorded;
  std::size_t first = 0;     ///< the first one used, into `recorded`
  std::size_t count = 0;     ///< number used, consecutive; 0 without any device operation
  std::vector<std::uint32_t> iteration_of;  ///< by device operation, into `recorded`; or kNone
  Duration host_ahead{};     ///< of the device's clock (host_clock.hpp)
  /// By device operation: how much later than recorded it runs, at the end of the pass, because it
  /// was queued before the recording (before_window.hpp); empty: none.
  std::vector<Duration> kept;
  Interval host;             ///< of the iterations used, as recorded
  Intervals waits;           ///< host time waiting for work from before the pass; part of `host`
  Duration host_time{};      ///< `host` without `waits`
  Duration device_time{};
  Duration length{};         ///< of the pass when repeated; at least both of these
  bool queue_cut = false;           ///< lacks what was queued before the recording (kQueueCut)
  bool start_skew_unknown = false;  ///< may hold waits for late ranks (kStartSkewUnknown)
  CounterSet counters;

  [[nodiscard]] bool holds_op(std::size_t op) const {
    return iteration_of[op] != kNone && iteration_of[op] - first < count;
  }
  [[nodiscard]] bool holds_call(TraceTime start) const {
    return start >= host.begin && start < host.end;
  }
  /// The instant of the pass without `waits`: an instant before a wait moves towards its end. By
  /// the host's clock, as `host` and `waits`.
  [[nodiscard]] TraceTime without_waits(TraceTime at) const;
  /// without_waits() for an operation, by the device's clock.
  [[nodiscard]] TraceTime ran_without_waits(std::size_t op, TraceTime at) const {
    return without_waits(at + later(op) + host_ahead) - host_ahead;
  }
  /// How much later than recorded the operation runs in the pass.
  [[nodiscard]] Duration later(std::size_t op) const {
    return kept.empty() ? Duration{} : kept[op];
  }
  /// Mean length of the pass's iterations when repeated; 0 without any.
  [[nodiscard]] Duration iteration_time() const;
};

/// The pass of a job, by position of the rank.
struct JobPass {
  std::vector<RankPass> ranks;

  /// Mean over ranks.
  [[nodiscard]] Duration iteration_time() const;
  /// The largest number of recorded iterations of any rank.
  [[nodiscard]] std::size_t iterations_recorded() const;
  [[nodiscard]] std::size_t iterations_used() const;
  /// "4 recorded, 3 used (1 to 3); left out: 0 (the window's first)".
  [[nodiscard]] std::string text() const;
};

/// Fault: no rank has recorded an iteration of the choice; the fault lists the recorded ones.
[[nodiscard]] Result<JobPass> find_job_pass(const JobTrace& job,
                                            const IterationChoice& choice = {});
/// Finds the pass of one rank by itself.
[[nodiscard]] Result<RankPass> find_rank_pass(const RankTrace& rank,
                                              const IterationChoice& choice = {});

/// A pass of one iteration: the one in `pass` of median host time, the shorter of two middle ones,
/// the first of equals.
[[nodiscard]] RankPass median_iteration(const RankTrace& rank, const RankPass& pass);

/// The repeated pass, as a recording of at least two passes (calls and device operations, no
/// markers and no samples), without waits for earlier work: in `window`, one pass long, each
/// operation of the pass runs once, though not all in the same pass.
struct RepeatedTrace {
  RankTrace trace;
  Interval window;
};
[[nodiscard]] RepeatedTrace repeated_trace(const RankTrace& rank, const RankPass& pass);

}  // namespace bubblesim::traces
