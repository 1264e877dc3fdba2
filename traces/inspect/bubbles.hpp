// Finds the times in which a rank's GPU runs no computing kernel; each such nanosecond has one
// cause.
//
// Window: from the start of the rank's first device operation to the end of its last.
// Busy: a kernel, copy or memset runs. Idle: none runs. Bubble: no computing kernel runs, so that a
// filler could use the SMs: a collective that waits for its peers leaves nearly all of them free, a
// copy or memset all.
//
// A bubble falls into segments with one cause each. While a collective runs:
//   collective_wait   at least one running collective is not a send or receive
//   peer_wait         only sends and receives run (pipeline stages, expert exchange)
// While only copies and memsets run: transfer.
// While nothing runs, the cause follows from the operation N that ends the gap and the host call L
// that launched N. Let g be the gap, `queued` the end of L.
// The part of g before `queued` (N was not launched yet) has its cause in the host's activity:
//   synchronisation   a driving thread was blocked, and none was in another call. Blocked: in a
//                     stream, device or event synchronisation, in a free, or in a copy or memset
//                     call that returned no earlier than its own device operation ended.
//   host_silent       a stretch of at least `host_silence` without any call of a driving thread
//                     (data loading, checkpoints, Python): the stretch's part within g
//   synchronisation   the rest of the part, if a blocked stretch overlaps it: the queue was
//                     empty because the host had waited, not because launching is slow
//   launch_bound      the rest otherwise: calls, and short pauses between calls
// The part of g from `queued` on (N was launched and had not started):
//   launch_bound      N started within `launch_latency_limit` of `queued`: launch latency
//   turnaround        else, if that part is at most `turnaround_limit`: the device's own pause
//                     between queued operations
//   other             else: N was launched and the device was empty; no record says why N waited
// Without a recorded launch of N, the whole gap is `turnaround` up to `turnaround_limit`, else
// `other`, and `inspect_gap_without_launch` counts it.
//
// A driving thread is one that launched a kernel or graph of this trace; if no such launch was
// recorded, all threads drive. Event queries are not calls here: watchdogs poll. If operations
// start together, N is the first of them in the trace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/time.hpp"
#include "traces/iterations/intervals.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

enum class BubbleCause : std::uint8_t {
  kCollectiveWait, kPeerWait, kTransfer, kLaunchBound, kSynchronisation, kHostSilent, kTurnaround,
  kOther,
};
inline constexpr std::size_t kBubbleCauseCount = 8;

/// snake_case: "collective_wait".
[[nodiscard]] std::string_view bubble_cause_name(BubbleCause cause);
/// The name for people: "collective wait".
[[nodiscard]] std::string_view bubble_cause_label(BubbleCause cause);

/// Thresholds of the attribution. They move time between causes and do not change the sum. Sources:
/// seven public PyTorch traces (HolisticTraceAnalysis ns_resolution, nccl_parser and trace_diff;
/// TraceLens owlv2 and nsfw; sam2 c33d09d; Kineto resnet50_num_workers_0).
struct BubbleThresholds {
  /// A launched operation starts on an idle device within this of its call's end. Measured: median
  /// 0.8-2.7 us, at most 4.4 us.
  Duration launch_latency_limit{10'000};
  /// Queued operations follow each other within this. Measured: median 0.8-2 us, 99.9 % below
  /// 12 us.
  Duration turnaround_limit{20'000};
  /// A host thread that launches eagerly pauses for less than this between launches. Measured:
  /// 99 % below 90-540 us in six traces, 2 ms in one. Longer pauses are mostly tens of ms.
  Duration host_silence{1'000'000};
};

struct BubbleSegment {
  Interval span;
  BubbleCause cause = BubbleCause::kOther;
  friend bool operator==(const BubbleSegment&, const BubbleSegment&) = default;
};

/// When each kind of operation runs on the device. Each list is sorted and disjoint.
struct DeviceUse {
  Interval window;       ///< first start to last end; both zero without operations
  Intervals busy;        ///< any operation
  Intervals own;         ///< computing kernels
  Intervals transfer;    ///< copies and memsets
  Intervals collective;  ///< collectives that are not point-to-point
  Intervals peer;        ///< sends and receives
};

/// Whether it is a send or receive. A collective of unknown kind does not count as one.
[[nodiscard]] bool is_peer_operation(const RankTrace& rank, const DeviceOp& op);

[[nodiscard]] DeviceUse device_use(const RankTrace& rank);

/// The rank's bubbles in order of time, adjacent segments of one cause joined. Total length: window
/// minus `own`. Adds the counts of unexplained gaps to `counters`.
[[nodiscard]] std::vector<BubbleSegment> bubble_segments(const RankTrace& rank,
                                                         const DeviceUse& use,
                                                         const BubbleThresholds& thresholds,
                                                         CounterSet& counters);

/// Time by cause, indexed by BubbleCause.
using CauseTimes = std::array<Duration, kBubbleCauseCount>;

}  // namespace bubblesim::traces
