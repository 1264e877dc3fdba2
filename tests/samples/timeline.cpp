#include "tests/samples/timeline.hpp"

#include <algorithm>

namespace bubblesim::traces {
namespace {

// Round numbers in the range of an A100-SXM4-40GB (data sheet: 312 TFLOP/s half precision,
// 1555 GB/s of memory, 300 GB/s NVLink each way, PCIe 4.0 x16 32 GB/s), at usual efficiencies.
constexpr double kGemmFlops = 250e12;
constexpr double kAttentionFlops = 110e12;
constexpr double kMemoryBytes = 1.3e12;
constexpr double kRingBytes = 200e9;
constexpr double kTransferBytes = 180e9;
constexpr double kHostCopyBytes = 22e9;
constexpr double kShortestKernel = 8e-6;   // seconds; also the fixed part of a GEMM
constexpr double kRingLatency = 25e-6;
constexpr double kTransferLatency = 12e-6;
constexpr double kHostCopyLatency = 3e-6;
constexpr std::uint64_t kTile = 128;

Duration from_seconds(double seconds) {
  return Duration{static_cast<std::int64_t>(seconds * 1e9 + 0.5)};
}

std::uint32_t tiles(std::uint64_t extent) {
  return static_cast<std::uint32_t>((extent + kTile - 1) / kTile);
}

}  // namespace

SampleKernel gemm_kernel(const std::string& what, std::uint64_t m, std::uint64_t n,
                         std::uint64_t k) {
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) *
                       static_cast<double>(k);
  const LaunchShape shape{{tiles(n), tiles(m), 1}, {256, 1, 1}, 168, 98304};
  return {"sample_gemm_f16_128x128_" + what, shape,
          from_seconds(kShortestKernel + flops / kGemmFlops)};
}

SampleKernel elementwise_kernel(const std::string& what, std::uint64_t bytes) {
  constexpr std::uint64_t kBytesPerBlock = 128 * 4 * 2 * 2;  // 4 halves a thread, in and out
  const auto blocks = static_cast<std::uint32_t>((bytes + kBytesPerBlock - 1) / kBytesPerBlock);
  const double seconds = static_cast<double>(bytes) / kMemoryBytes;
  return {"sample_elementwise_" + what, LaunchShape{{blocks, 1, 1}, {128, 1, 1}, 32, 0},
          from_seconds(std::max(kShortestKernel, seconds))};
}

SampleKernel attention_kernel(const std::string& what, std::uint64_t tokens,
                              std::uint64_t sequence, std::uint64_t hidden, double flop_factor) {
  constexpr std::uint64_t kHeadWidth = 128;
  const auto heads = static_cast<std::uint32_t>(hidden / kHeadWidth);
  const auto batch = static_cast<std::uint32_t>(tokens / sequence);
  // Two products of tokens x sequence x hidden; the causal half of each.
  const double flops = 2.0 * static_cast<double>(tokens) * static_cast<double>(sequence) *
                       static_cast<double>(hidden) * flop_factor;
  const LaunchShape shape{{tiles(sequence), heads, batch}, {128, 1, 1}, 240, 65536};
  return {"sample_attention_" + what, shape,
          from_seconds(kShortestKernel + flops / kAttentionFlops)};
}

LaunchShape nccl_shape() { return {{24, 1, 1}, {544, 1, 1}, 96, 83968}; }

Duration all_reduce_time(std::uint64_t bytes, std::uint64_t members) {
  const double moved = 2.0 * static_cast<double>(bytes) * static_cast<double>(members - 1) /
                       static_cast<double>(members);
  return from_seconds(kRingLatency + moved / kRingBytes);
}

Duration transfer_time(std::uint64_t bytes) {
  return from_seconds(kTransferLatency + static_cast<double>(bytes) / kTransferBytes);
}

Duration host_copy_time(std::uint64_t bytes) {
  return from_seconds(kHostCopyLatency + static_cast<double>(bytes) / kHostCopyBytes);
}

namespace {

using std::chrono::nanoseconds;

// What the calls cost the host thread, before jitter.
constexpr Duration kLaunchCost = nanoseconds{5000};
constexpr Duration kCollectiveCost = nanoseconds{9000};
constexpr Duration kCopyCost = nanoseconds{6500};
constexpr Duration kEventCost = nanoseconds{1400};
constexpr Duration kSyncCost = nanoseconds{2500};

}  // namespace

Duration jitter(Duration span, double deviation, RandomStream& random) {
  const double deviate = random.normal(0.0, deviation);
  return scale(span, 1.0 + std::clamp(deviate, -3 * deviation, 3 * deviation));
}

RankScript::RankScript(std::uint32_t rank, std::uint32_t world_size, std::uint64_t seed)
    : random_(seed, "sample rank " + std::to_string(rank)) {
  trace_.rank = rank;
  trace_.world_size = world_size;
  trace_.device = {"NVIDIA A100-SXM4-40GB", 108, 8, 0, 42505273344ULL};
  trace_.threads = {{4000 + rank, "python"}};
  trace_.names.intern("");
}

std::uint32_t RankScript::add_stream(std::uint64_t system_id, std::int32_t priority) {
  trace_.streams.push_back({system_id, priority});
  return static_cast<std::uint32_t>(trace_.streams.size() - 1);
}

Duration RankScript::jittered(Duration span, double deviation) {
  return jitter(span, deviation, random_);
}

ScriptStep& RankScript::add(ScriptStep::Kind kind, Duration host) {
  ScriptStep step;
  step.kind = kind;
  step.host = jittered(host, kHostJitter);
  return steps_.emplace_back(step);
}

void RankScript::think(Duration span) { add(ScriptStep::Kind::kThink, span); }

void RankScript::launch(std::uint32_t stream, const SampleKernel& kernel) {
  ScriptStep& step = add(ScriptStep::Kind::kOp, kLaunchCost);
  step.stream = stream;
  step.call = name("cudaLaunchKernel");
  step.op.name = name(kernel.name);
  step.op.shape = trace_.shapes.intern(kernel.shape);
  step.op.duration = jittered(kernel.duration, kDeviceJitter);
}

void RankScript::collective(std::uint32_t stream, const SampleKernel& kernel,
                            const Collective& what) {
  ScriptStep& step = add(ScriptStep::Kind::kOp, kCollectiveCost);
  step.stream = stream;
  step.call = name("cudaLaunchKernelExC");
  step.op.kind = DeviceOpKind::kCollective;
  step.op.name = name(kernel.name);
  step.op.shape = trace_.shapes.intern(kernel.shape);
  step.op.duration = kernel.duration;
  step.op.collective = static_cast<std::uint32_t>(trace_.collectives.size());
  trace_.collectives.push_back(what);
}

void RankScript::copy(std::uint32_t stream, CopyDirection direction, std::uint64_t bytes) {
  ScriptStep& step = add(ScriptStep::Kind::kOp, kCopyCost);
  step.stream = stream;
  step.call = name("cudaMemcpyAsync");
  step.op.kind = DeviceOpKind::kCopy;
  step.op.direction = direction;
  step.op.bytes = bytes;
  step.op.name = name(direction == CopyDirection::kHostToDevice
                          ? "Memcpy HtoD (Pinned -> Device)"
                          : "Memcpy DtoH (Device -> Pinned)");
  step.op.duration = jittered(host_copy_time(bytes), kDeviceJitter);
}

void RankScript::order(std::uint32_t before, std::uint32_t after) {
  const std::uint64_t event = next_event_++;
  ScriptStep& record = add(ScriptStep::Kind::kRecord, kEventCost);
  record.stream = before;
  record.event = event;
  record.call = name("cudaEventRecord");
  ScriptStep& wait = add(ScriptStep::Kind::kWait, kEventCost);
  wait.stream = after;
  wait.event = event;
  wait.call = name("cudaStreamWaitEvent");
}

void RankScript::stream_sync(std::uint32_t stream) {
  ScriptStep& step = add(ScriptStep::Kind::kStreamSync, kSyncCost);
  step.stream = stream;
  step.call = name("cudaStreamSynchronize");
}

void RankScript::begin(MarkerKind kind, const std::string& text, std::int64_t number) {
  ScriptStep& step = add(ScriptStep::Kind::kBegin, Duration{0});
  step.marker.kind = kind;
  step.marker.name = name(text);
  step.marker.number = number;
}

void RankScript::end() { add(ScriptStep::Kind::kEnd, Duration{0}); }

void RankScript::memory(std::uint64_t allocated, std::uint64_t reserved) {
  ScriptStep& step = add(ScriptStep::Kind::kMemory, Duration{0});
  step.memory.allocated_bytes = allocated;
  step.memory.reserved_bytes = reserved;
}

}  // namespace bubblesim::traces
