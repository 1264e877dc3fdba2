// Emits a rank's kernels and exchanges in order, and keeps the operations that the next kernel has
// to wait for.
//
// Streams: kComputeStream; kExchangeStream for exchanges inside layers; kGradientStream for
// gradients and sharded parameters; kWideAreaStream for exchanges between regions that are not part
// of every iteration; new_stream() makes further ones for pipeline transfers and copies between GPU
// and host.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "sim/synth/collective_table.hpp"
#include "sim/synth/job_plan.hpp"
#include "sim/synth/program_writer.hpp"

namespace bubblesim::synth {

inline constexpr std::uint16_t kComputeStream = 0;
inline constexpr std::uint16_t kExchangeStream = 1;
inline constexpr std::uint16_t kGradientStream = 2;
inline constexpr std::uint16_t kWideAreaStream = 3;
inline constexpr std::uint16_t kFirstOtherStream = 4;

/// The pass, which sets the host cost of a launch call.
enum class HostPass : std::uint8_t { kForward, kBackward, kOptimizer };

/// A collective to launch.
struct CollectiveCall {
  Use use;
  network::CollectivePattern kind = network::CollectivePattern::kAllReduce;
  double bytes = 0;
  Communicator communicator;
  std::uint16_t stream = kExchangeStream;
  std::string_view name;
  network::CollectiveKernel form;
};

/// Whether a backward pass exchanges gradients: only the stage's last pass of the iteration, or of
/// a run (rank_memory.hpp, Scattering), does.
enum class LastPass : std::uint8_t { kNo, kYes };

class RankEmitter {
 public:
  RankEmitter(const ParallelPlan& plan, CollectiveTable& collectives, const RankPlace& place);

  [[nodiscard]] const ParallelPlan& plan() const { return plan_; }
  [[nodiscard]] const RankPlace& place() const { return place_; }
  [[nodiscard]] ProgramWriter& writer() { return writer_; }

  /// Emits kernels and exchanges; each waits for the previous one.
  void emit(std::span<const TimedItem> items, HostPass pass);
  /// Alternates two parts of a micro-batch: while one part communicates, the other computes.
  void emit_in_turns(std::span<const TimedItem> first, std::span<const TimedItem> second,
                     HostPass pass);
  /// Ends the alternation: the next kernel waits for the pending operations of both parts.
  void join_parts();
  /// Emits a kernel that is not in the model's layers, such as the optimiser's.
  void emit(const OpDraft& kernel, HostPass pass);

  /// Launches a collective after all compute so far; returns its operation. Compute does not wait
  /// for it.
  std::uint32_t launch(const CollectiveCall& call, Duration think);
  /// As launch(), and also after all operations that the lane's next kernel waits for.
  std::uint32_t launch_in_turn(const CollectiveCall& call, Duration think);
  /// Launches a collective that waits for no operation: a receive that is posted ahead.
  std::uint32_t launch_at_once(const CollectiveCall& call, Duration think);

  /// Lets the lane's next kernel wait for the operation, too.
  void wait_next(std::uint32_t op) { lane().waits.push_back(op); }

  /// Selects a lane (0 by default), whose kernels do not wait for the other lane's exchanges: a
  /// forward and a backward interleave, so that each computes while the other communicates.
  void select_lane(std::uint32_t number) { lane_ = number; }
  [[nodiscard]] std::uint32_t lane_number() const { return lane_; }

  /// The operations that the lane's next kernel waits for, and the last kernel so far.
  [[nodiscard]] std::vector<std::uint32_t> awaited();
  /// A stream for a single use.
  [[nodiscard]] std::uint16_t new_stream() { return next_stream_++; }

  /// The last kernel on the compute stream; kNoIndex: none yet.
  [[nodiscard]] std::uint32_t last_compute() const { return last_compute_; }

 private:
  struct Lane {
    std::vector<std::uint32_t> waits;        ///< of its next kernel
    std::vector<std::uint32_t> overlapping;  ///< of the kernel after the next
  };

  [[nodiscard]] Lane& lane() { return lanes_[lane_][part_]; }
  void exchange(const model::Communication& what, HostPass pass);
  [[nodiscard]] CollectiveCall call_of(const model::Communication& what);
  [[nodiscard]] CallCost cost_of(HostPass pass) const;
  std::uint32_t launch_after(const CollectiveCall& call, Duration think,
                             const std::vector<std::uint32_t>& after);
  std::uint32_t collective_profile(std::uint32_t collective);

  const ParallelPlan& plan_;
  CollectiveTable& collectives_;
  RankPlace place_;
  ProgramWriter writer_;
  std::vector<OpDraft> kernels_;  ///< by TimedModel::kernels; profile kNoIndex: not prepared
  std::map<std::uint32_t, std::uint32_t> profile_of_channels_;
  std::map<Channel, std::uint64_t> uses_;
  std::array<std::array<Lane, 2>, 2> lanes_;  ///< of each part of a micro-batch
  std::uint16_t next_stream_ = kFirstOtherStream;
  std::uint32_t lane_ = 0;
  std::uint32_t part_ = 0;
  std::uint32_t last_compute_ = program::kNoIndex;
};

/// Profile and launch of a collective's kernel: a block for each channel, with 512 threads and one
/// more warp in each block, and 96 registers a thread (launch shapes of ncclDevKernel in the H100
/// and A100 traces of the public profiler data; earlier versions differ by a few warps).
[[nodiscard]] TimedKernel collective_kernel(std::uint32_t channels, const hardware::GpuSpec& gpu);

/// The operation of a collective, without its profile.
[[nodiscard]] OpDraft draft_of(const CollectiveCall& call, CollectiveTable& collectives,
                               ProgramWriter& writer);

/// The network's pattern for an exchange.
[[nodiscard]] network::CollectivePattern collective_kind(model::Exchange exchange);

}  // namespace bubblesim::synth
