// The lead of the host's clock over the device's in a recording.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Negative: the host's clock is behind. Estimated from all launches and waits of the recording; 0
/// if they are consistent with equal clocks.
[[nodiscard]] Duration host_ahead(const RankTrace& trace);

// Finds launch calls of a recording that a full launch queue held, and the operations that made
// room.
//
// A launch puts its work into a ring of the driver, of 1,024 entries a stream. If the ring is full,
// the call returns only when an operation has left it: its time is the device's, not the host's.
// Our own recordings mark such calls (traces::HostStall); in others they are recognised:
//
// * at its start at least kNearlyFull launches are pending on its stream; a graph counts as one.
//   With a single stream, V100, A100 and H100 calls block at 1,022 or 1,023 pending operations.
//   Stream waits and event records take entries too, and most profilers do not say on which stream:
//   in a 16-GPU A100 job calls block at 952 to 994 operations, which with the thread's stream waits
//   in between are 1,005 to 1,047 entries (HolisticTraceAnalysis ns_resolution and
//   negative_queue_length, segment-anything-fast 9ab058c, modded-nanogpt).
// * it lasts more than kFarAbove times the usual time of a call of its kind that finds room;
// * an operation ended within it.
//
// The blocker is the last operation on that stream to end during the call, if the call returned at
// most kNoticed later (measured: 0 to 18 us, mostly 5 to 7); else the last operation on any stream,
// behind which the call's stream may have waited. The rest of the call is its usual time.

/// The wait of a launch call for room; `held` zero: none.
struct QueueWait {
  Duration held{};                   ///< part of the call's length that waits for room
  std::uint32_t op = kNone;          ///< the operation whose end made room, into device_ops; none:
                                     ///< not known
  bool inferred = false;             ///< not from the recording
};

class LaunchQueues {
 public:
  static constexpr std::size_t kNearlyFull = 896;  ///< of 1,024: 7/8
  static constexpr int kFarAbove = 2;
  static constexpr Duration kNoticed = std::chrono::microseconds(20);

  /// `trace` outlives it; its operations are sorted by start.
  explicit LaunchQueues(const RankTrace& trace);

  /// The wait of a call, by its index in the trace and its first operation.
  [[nodiscard]] QueueWait wait_of(std::uint32_t call, std::uint32_t first_op) const;

 private:
  struct StreamOps {
    std::vector<std::uint32_t> ops;  ///< in order of start, which is that of their launches
    std::vector<TraceTime> ends;     ///< the latest end so far
    std::vector<std::uint32_t> calls;  ///< into both: the first operation of each launch
  };
  [[nodiscard]] Duration stalled(const HostCall& call) const;
  [[nodiscard]] bool nearly_full(const HostCall& call, std::uint32_t first_op) const;
  [[nodiscard]] std::uint32_t last_ended(const HostCall& call, std::uint32_t first_op) const;
  void measure_usual();

  const RankTrace& trace_;
  std::vector<StreamOps> streams_;
  std::vector<std::uint32_t> places_;  ///< by operation: number of launches before it on its stream
  std::vector<std::vector<HostStall>> stalls_;  ///< by thread, each by start
  std::array<Duration, 4> usual_{};  ///< cost of a call with room in its queue, by kind of launch
};

}  // namespace bubblesim::traces
