#include "tests/samples/kernel_costs.hpp"

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

}  // namespace bubblesim::traces
