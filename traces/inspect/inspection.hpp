// The figures that `bubblesim inspect` shows of a trace, as numbers. Times are recorded time.
//
// inspect_rank costs O(n log n) in the rank's records. Fractions are computed from the stored sums,
// never stored. bubbles.hpp defines causes, busy, idle and bubble.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/time.hpp"
#include "traces/inspect/bubbles.hpp"
#include "traces/inspect/sensitivities.hpp"
#include "traces/iterations/job_pass.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

struct InspectOptions {
  BubbleThresholds thresholds;
  std::size_t top_kernels = 15;  ///< rows of the kernel table; 0: all
};

/// Bubbles by length. Buckets are half-open: [previous limit, limit).
inline constexpr std::size_t kLengthBucketCount = 6;
inline constexpr std::array<Duration, kLengthBucketCount - 1> kLengthBucketLimits{
    Duration{10'000}, Duration{100'000}, Duration{1'000'000}, Duration{10'000'000},
    Duration{100'000'000}};

/// One bucket. A bubble is counted by its whole length; its time is split by cause.
struct LengthBucket {
  std::uint64_t count = 0;
  Duration total{};
  CauseTimes by_cause{};  ///< sums to `total`
};

/// The device over one window of one rank, or summed over ranks (add()).
struct WindowUse {
  Duration length{};         ///< of the window
  Duration busy{};           ///< any operation runs
  Duration own{};            ///< a computing kernel runs
  Duration communication{};  ///< any collective runs
  Duration overlapped{};     ///< a collective and a computing kernel run
  CauseTimes by_cause{};   ///< of bubbles; sums to bubble()
  std::array<LengthBucket, kLengthBucketCount> lengths{};  ///< of bubbles; sums to bubble()
  std::uint64_t bubbles = 0;     ///< maximal spans in which no computing kernel runs
  Duration longest_bubble{};
  std::uint64_t gaps = 0;        ///< maximal spans in which nothing runs
  std::uint64_t gaps_100us = 0;  ///< of at least 100 us
  std::uint64_t gaps_1ms = 0;    ///< of at least 1 ms
  double sm_time_ns = 0;         ///< see sm_cover(); 0 if no launch shape is known
  Duration sm_known{};           ///< window length included in sm_time_ns

  [[nodiscard]] Duration idle() const { return length - busy; }
  [[nodiscard]] Duration bubble() const { return length - own; }
  /// Mean over the window of min(1, blocks of running kernels / SMs of the device): an upper bound
  /// of the share of SMs in use, since it counts a kernel's whole grid as resident. Nothing if the
  /// SM count or every launch shape is unknown.
  [[nodiscard]] std::optional<double> sm_cover() const;
  void add(const WindowUse& other);
};

struct Iteration {
  std::int64_t number = -1;  ///< of the marker; -1: none
  Interval span;             ///< in host time; traces/iterations/job_pass.hpp
  IterationUse use = IterationUse::kUsed;
  Duration busy{};
  Duration own{};
};

struct Iterations {
  bool marked = false;       ///< false: no markers; the whole recording counts as one iteration
  std::vector<Iteration> all;
  std::size_t used = 0;
  /// Over the iterations used: host time, device time, and the period at which the pass repeats,
  /// which is the longer of the two, or the period of a slower rank of the job.
  Duration host_time{};
  Duration device_time{};
  Duration length{};
  /// `length` over the number of iterations used; 0 without any.
  [[nodiscard]] Duration steady_mean() const;
  [[nodiscard]] Duration shortest() const;
  [[nodiscard]] Duration longest() const;
};

/// All launches of one name.
struct KernelUse {
  std::string name;
  DeviceOpKind kind = DeviceOpKind::kKernel;
  std::uint64_t count = 0;
  Duration total{};  ///< sum of durations; concurrent kernels count twice
};

/// All collectives of one kind, or all copies of one direction.
template <class Kind>
struct TransferUse {
  Kind kind{};
  std::uint64_t count = 0;
  Duration total{};
  std::uint64_t bytes = 0;          ///< of those with a recorded size
  std::uint64_t without_bytes = 0;  ///< how many have no recorded size
};

struct MemoryUse {
  std::uint64_t samples = 0;
  std::uint64_t allocated_high_water_bytes = 0;
  std::uint64_t reserved_high_water_bytes = 0;
};

/// Sums over the whole window, most time first; ties by name or enumerator.
struct OperationUse {
  std::uint64_t operations = 0;
  Duration total{};                ///< of all operations' durations
  std::vector<KernelUse> kernels;  ///< kernels and collectives, the first `top_kernels`
  std::uint64_t kernel_names = 0;  ///< before the cut to `top_kernels`
  std::vector<TransferUse<CollectiveKind>> collectives;
  std::vector<TransferUse<CopyDirection>> copies;
  std::uint64_t memsets = 0;
  std::uint64_t memset_bytes = 0;
};

struct RankInspection {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  DeviceInfo device;
  Provenance provenance;
  Interval window;          ///< first start to last end of device operations
  WindowUse whole;
  /// Device time of one pass of the iterations used, to the end of its last operation as the pass
  /// repeats (repeated_trace). Nothing if the rank has no device operation.
  std::optional<Interval> steady_window;
  std::optional<WindowUse> steady;
  Iterations iterations;
  OperationUse operations;
  MemoryUse memory;
  CounterSet counters;      ///< the trace's own and those of the inspection

  /// `steady` if present, since fillers run long after the job's warm-up; else `whole`.
  [[nodiscard]] const WindowUse& representative() const { return steady ? *steady : whole; }
};

struct JobInspection {
  std::vector<RankInspection> ranks;
  WindowUse whole;            ///< sum over ranks
  WindowUse representative;   ///< sum of the ranks' representative()
  std::size_t iterations_recorded = 0;
  std::size_t iterations_used = 0;
  Duration iteration_time{};     ///< mean over ranks
  std::string iterations_text;   ///< JobPass::text()
  std::size_t steady_ranks = 0;  ///< ranks whose representative is a steady window
  OperationUse operations;    ///< merged by name over ranks
  CounterSet counters;
  InspectOptions options;
  /// Empty until sim/workload, which can replay the job, fills them in.
  std::optional<Sensitivities> sensitivities;
  std::vector<Explanation> explained;  ///< by rank
};

/// `pass`: the pass of the job; without it, the pass of the settled iterations.
[[nodiscard]] JobInspection inspect_job(const JobTrace& job, const JobPass& pass,
                                        const InspectOptions& options = {});
[[nodiscard]] JobInspection inspect_job(const JobTrace& job, const InspectOptions& options = {});
[[nodiscard]] RankInspection inspect_rank(const RankTrace& rank);

// Device use over one window; a part of inspect_rank. bubbles.hpp and inspection.hpp define the
// terms.

/// `segments` are the rank's over its whole window; `window` lies within it.
[[nodiscard]] WindowUse window_use(const RankTrace& rank, const DeviceUse& use,
                                   const std::vector<BubbleSegment>& segments, Interval window);

// Iterations of a rank in an inspection.

/// The recorded iterations of a pass (traces/iterations/job_pass.hpp), with their device use.
[[nodiscard]] Iterations iterations_of(const RankPass& pass, const DeviceUse& use);

}  // namespace bubblesim::traces
