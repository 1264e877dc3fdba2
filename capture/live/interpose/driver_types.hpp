// The part of CUDA's driver interface that the gate needs; CUDA's own headers are not needed to
// build it. Values and layouts are those of cuda.h 12.0 to 13.0, where they have not changed since
// 11.
#pragma once

#include <cstdint>

namespace bubblesim::capture::interpose {

using CuResult = int;
using Handle = void*;          ///< functions, graphs, contexts, events
using Stream = void*;
using Address = unsigned long long;  ///< of device memory

inline constexpr CuResult kCuSuccess = 0;
inline constexpr CuResult kCuInvalidValue = 1;
inline constexpr CuResult kCuNotFound = 500;
inline constexpr CuResult kCuNotReady = 600;

/// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  Stream stream;
  void* attributes;
  unsigned attribute_count;
};

/// CUDA_KERNEL_NODE_PARAMS_v2; the first version ends with `extra`.
struct KernelNode {
  Handle function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void** parameters;
  void** extra;
  Handle kernel;   ///< used if `function` is null
  Handle context;
};

/// CUgraphNodeType.
enum class GraphNodeType : int { kKernel = 0, kCopy = 1, kMemset = 2, kChildGraph = 4 };

/// The flag of cuGetProcAddress with which streams of value 0 are the thread's own.
inline constexpr std::uint64_t kPerThreadStreams = 2;
inline constexpr std::uintptr_t kOwnStream = 2;      ///< CU_STREAM_PER_THREAD
inline constexpr unsigned kEventWithoutTiming = 2;   ///< CU_EVENT_DISABLE_TIMING
inline constexpr int kCaptureModeRelaxed = 2;        ///< CU_STREAM_CAPTURE_MODE_RELAXED

}  // namespace bubblesim::capture::interpose
