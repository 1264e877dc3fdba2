// Scripts of host calls and the player that turns them into causally consistent traces.
//
// A script lists the actions of one rank's host thread in order: think, launch, record, wait,
// synchronise. `play` runs the scripts of all ranks together. The host clock of a rank moves on
// by the cost of each call. A device operation starts once it is launched, its stream is free
// and the events that its stream waits for are reached. The members of a collective end
// together, one transfer time after the last of them has started.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/base/time.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

// How long the kernels of the samples take and how they are launched.
//
// The samples are illustrations, not measurements: a duration is FLOPs or bytes over the rate of
// the kernel's kind, a round number of timeline.cpp. No result that claims fidelity may use them.

/// A kernel of a sample: its name, how it is launched, and how long it takes alone.
struct SampleKernel {
  std::string name;
  LaunchShape shape;
  Duration duration{};
};

/// An m x n result over k, in half precision, one block per 128 x 128 tile.
[[nodiscard]] SampleKernel gemm_kernel(const std::string& what, std::uint64_t m, std::uint64_t n,
                                       std::uint64_t k);

/// Reads and writes `bytes` of device memory in all.
[[nodiscard]] SampleKernel elementwise_kernel(const std::string& what, std::uint64_t bytes);

/// Fused causal attention over `tokens` = batches x `sequence`, `hidden` wide. `flop_factor` is
/// 1 for forward; backward recomputes and takes 2.5 times as much.
[[nodiscard]] SampleKernel attention_kernel(const std::string& what, std::uint64_t tokens,
                                            std::uint64_t sequence, std::uint64_t hidden,
                                            double flop_factor);

/// How an NCCL kernel of 24 channels is launched.
[[nodiscard]] LaunchShape nccl_shape();

/// Ring all-reduce of `bytes` over `members` GPUs of one NVLink node.
[[nodiscard]] Duration all_reduce_time(std::uint64_t bytes, std::uint64_t members);

/// One transfer of `bytes` to another GPU of the node.
[[nodiscard]] Duration transfer_time(std::uint64_t bytes);

/// One copy of `bytes` between host and device.
[[nodiscard]] Duration host_copy_time(std::uint64_t bytes);

/// One action of a host thread. The kind says which fields are used.
struct ScriptStep {
  enum class Kind : std::uint8_t { kThink, kOp, kRecord, kWait, kStreamSync, kBegin, kEnd,
                                   kMemory };
  Kind kind = Kind::kThink;
  Duration host{};           ///< what the call costs the thread
  std::uint32_t stream = 0;  ///< index
  std::uint64_t event = 0;
  DeviceOp op;               ///< kOp: everything but times, correlation and launch
  NameId call{};             ///< kOp: the host call's name
  Marker marker;             ///< kBegin
  MemorySample memory;       ///< kMemory
};

/// One rank's script. The tables of the trace (names, shapes, streams, collectives) fill as steps
/// are added; `play` adds the timed records. Host costs are jittered, seeded by the rank.
class RankScript {
 public:
  RankScript(std::uint32_t rank, std::uint32_t world_size, std::uint64_t seed);

  std::uint32_t add_stream(std::uint64_t system_id, std::int32_t priority);

  void think(Duration span);
  /// The kernel's duration is jittered by `kDeviceJitter`.
  void launch(std::uint32_t stream, const SampleKernel& kernel);
  /// The kernel's duration is the transfer alone, without jitter: all members must agree on it.
  void collective(std::uint32_t stream, const SampleKernel& kernel, const Collective& what);
  void copy(std::uint32_t stream, CopyDirection direction, std::uint64_t bytes);
  /// Work launched on stream `after` from here on waits for the work launched on `before` so far.
  void order(std::uint32_t before, std::uint32_t after);
  void stream_sync(std::uint32_t stream);
  void begin(MarkerKind kind, const std::string& name, std::int64_t number);
  void end();
  void memory(std::uint64_t allocated, std::uint64_t reserved);

  /// Interns a name in the trace, for the groups of collectives.
  NameId name(const std::string& text) { return trace_.names.intern(text); }
  [[nodiscard]] RankTrace& trace() { return trace_; }
  [[nodiscard]] const std::vector<ScriptStep>& steps() const { return steps_; }

 private:
  [[nodiscard]] Duration jittered(Duration span, double deviation);
  ScriptStep& add(ScriptStep::Kind kind, Duration host);

  RankTrace trace_;
  std::vector<ScriptStep> steps_;
  RandomStream random_;
  std::uint64_t next_event_ = 1;
};

/// Scales `span` by 1 plus a normal deviate that is clamped to three deviations.
[[nodiscard]] Duration jitter(Duration span, double deviation, RandomStream& random);

inline constexpr double kDeviceJitter = 0.015;
inline constexpr double kHostJitter = 0.08;

/// When the samples begin, in recorded time.
inline constexpr TraceTime kOrigin{std::chrono::seconds{1}};

/// Runs all scripts from `origin`. Scripts that deadlock are a programmer fault.
[[nodiscard]] JobTrace play(std::vector<RankScript>&& scripts, TraceTime origin);

}  // namespace bubblesim::traces
