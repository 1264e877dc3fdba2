// CUDA's driver interface as this device uses it: the few types and numbers of cuda.h (12.4 to
// 13.0), written down so that host code builds without a toolkit. A test compares them with
// NVIDIA's header where it is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bubblesim::capture::cuda {

/// CUresult: the codes that this device distinguishes.
enum class Status : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kNotReady = 600,
  kLaunchFailed = 719,
};

using DeviceHandle = int;              ///< CUdevice
using DevicePointer = std::uint64_t;   ///< CUdeviceptr
struct ContextState;
struct StreamState;
struct EventState;
struct LibraryState;
struct KernelState;
struct GraphState;
struct GraphExecState;
struct GreenState;
struct ResourceDescState;
using ContextHandle = ContextState*;
using StreamHandle = StreamState*;
using EventHandle = EventState*;
using LibraryHandle = LibraryState*;
/// CUkernel; cuLaunchKernel and the occupancy calculator take it as a CUfunction.
using KernelHandle = KernelState*;
using GraphHandle = GraphState*;
using GraphExecHandle = GraphExecState*;
using GreenHandle = GreenState*;
using ResourceDesc = ResourceDescState*;

/// CUdevice_attribute.
enum Attribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxBlockX = 2,
  kMaxBlockY = 3,
  kMaxBlockZ = 4,
  kMaxGridX = 5,
  kMaxGridY = 6,
  kMaxGridZ = 7,
  kClockKhz = 13,
  kSmCount = 16,
  kMemoryClockKhz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kMaxThreadsPerSm = 39,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kSharedBytesPerSm = 81,
  kRegistersPerSm = 82,
  kSharedBytesPerBlock = 97,   ///< opted in
  kMaxBlocksPerSm = 106,
  kReservedSharedBytes = 111,  ///< of a block
};

/// CUfunction_attribute.
enum KernelAttribute : int { kRegisters = 4, kMaxDynamicSharedBytes = 8 };

inline constexpr unsigned kHostAllocPortable = 0x01;
inline constexpr unsigned kHostAllocDeviceMap = 0x02;
inline constexpr unsigned kStreamNonBlocking = 0x01;
inline constexpr unsigned kEventDisableTiming = 0x02;
inline constexpr int kCaptureThreadLocal = 1;
inline constexpr unsigned kGreenDefaultStream = 0x01;
inline constexpr int kResourceSm = 1;

/// CUdevResource of ABI 1. Later ABIs are longer, hence `room`; a function whose name has no
/// version keeps the ABI that it came with.
struct DeviceResource {
  int type;
  std::uint8_t inside[92];
  std::uint32_t sm_count;
  std::uint32_t smallest_partition;
  std::uint32_t alignment;
  std::uint8_t rest[36];
  std::uint8_t room[368];
};
inline constexpr std::size_t kResourceBytesOfAbi1 = 144;

struct Uuid {
  std::uint8_t bytes[16];
};

}  // namespace bubblesim::capture::cuda
