// Scripts of host calls and the player that turns them into causally consistent traces.
//
// A script is what one rank's host thread does, in order: think, launch, record, wait,
// synchronise. `play` runs the scripts of all ranks together: the host clock of a rank moves on
// by the cost of each call, a device operation starts when it was launched, its stream is free
// and the events that its stream waits for are reached, and the members of a collective end
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
// The samples are illustrations, not measurements: durations are FLOPs or bytes over one rate a
// kind, with the round numbers of timeline.cpp. Nothing that claims fidelity may use them.

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

/// One thing that a host thread does. Which fields count follows from the kind.
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
  /// Duration is the transfer alone; exact, because all members must agree on it.
  void collective(std::uint32_t stream, const SampleKernel& kernel, const Collective& what);
  void copy(std::uint32_t stream, CopyDirection direction, std::uint64_t bytes);
  /// Work that `after` gets from here on waits for what `before` has been given so far.
  void order(std::uint32_t before, std::uint32_t after);
  void stream_sync(std::uint32_t stream);
  void begin(MarkerKind kind, const std::string& name, std::int64_t number);
  void end();
  void memory(std::uint64_t allocated, std::uint64_t reserved);

  /// The trace's own copy of names, for collectives' groups.
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

/// Scales by 1 + a normal deviate, held within three deviations.
[[nodiscard]] Duration jitter(Duration span, double deviation, RandomStream& random);

inline constexpr double kDeviceJitter = 0.015;
inline constexpr double kHostJitter = 0.08;

/// When the samples begin, in recorded time.
inline constexpr TraceTime kOrigin{std::chrono::seconds{1}};

/// Runs all scripts from `origin`. The scripts must not deadlock (a programmer fault).
[[nodiscard]] JobTrace play(std::vector<RankScript>&& scripts, TraceTime origin);

}  // namespace bubblesim::traces
