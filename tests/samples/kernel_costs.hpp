// How long the kernels of the samples take and how they are launched.
//
// The samples are illustrations, not measurements: durations are FLOPs or bytes over one rate a
// kind, with the round numbers of kernel_costs.cpp. Nothing that claims fidelity may use them.
#pragma once

#include <cstdint>
#include <string>

#include "sim/base/time.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

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

}  // namespace bubblesim::traces
