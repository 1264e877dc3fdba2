// Our mirror of CUDA's driver interface against NVIDIA's own header, where there is one.
#include <gtest/gtest.h>

#ifdef HAVE_CUDA_H
#include <cuda.h>

#include "capture/replay/cuda/driver.hpp"

namespace bubblesim::capture::cuda {
namespace {

#define EQUAL(mine, theirs) \
  static_assert(static_cast<std::int64_t>(mine) == static_cast<std::int64_t>(theirs), #mine)

EQUAL(Status::kSuccess, CUDA_SUCCESS);
EQUAL(Status::kInvalidValue, CUDA_ERROR_INVALID_VALUE);
EQUAL(Status::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
EQUAL(Status::kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
EQUAL(Status::kNoDevice, CUDA_ERROR_NO_DEVICE);
EQUAL(Status::kNotReady, CUDA_ERROR_NOT_READY);
EQUAL(Status::kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
EQUAL(kMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
EQUAL(kMaxBlockX, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
EQUAL(kMaxBlockY, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
EQUAL(kMaxBlockZ, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
EQUAL(kMaxGridX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
EQUAL(kMaxGridY, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
EQUAL(kMaxGridZ, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
EQUAL(kClockKhz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
EQUAL(kSmCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
EQUAL(kMemoryClockKhz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
EQUAL(kMemoryBusBits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
EQUAL(kL2Bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
EQUAL(kMaxThreadsPerSm, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
EQUAL(kComputeMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
EQUAL(kComputeMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
EQUAL(kSharedBytesPerSm, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
EQUAL(kRegistersPerSm, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
EQUAL(kSharedBytesPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
EQUAL(kMaxBlocksPerSm, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
EQUAL(kReservedSharedBytes, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
EQUAL(kRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS);
EQUAL(kMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
EQUAL(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
EQUAL(kHostAllocDeviceMap, CU_MEMHOSTALLOC_DEVICEMAP);
EQUAL(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
EQUAL(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
EQUAL(kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(sizeof(Uuid) == sizeof(CUuuid));

/// Equal numbers of arguments, each of equal size: what the calling convention sees.
template <class Mine, class Theirs>
struct Same;
template <class... Mine, class... Theirs>
struct Same<Status (*)(Mine...), CUresult (*)(Theirs...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(Mine) != sizeof...(Theirs)) return false;
    else return ((sizeof(Mine) == sizeof(Theirs)) && ...);
  }();
};
#define SAME(name, function, arguments) \
  static_assert(Same<decltype(Driver::name), decltype(&function)>::value, #name);
BUBBLESIM_CUDA_NEEDED(SAME)

#if CUDA_VERSION >= 12050
BUBBLESIM_CUDA_WANTED(SAME)
EQUAL(kGreenDefaultStream, CU_GREEN_CTX_DEFAULT_STREAM);
EQUAL(kResourceSm, CU_DEV_RESOURCE_TYPE_SM);
static_assert(sizeof(CUdevResource) >= kResourceBytesOfAbi1);
static_assert(sizeof(DeviceResource) >= sizeof(CUdevResource));
static_assert(offsetof(DeviceResource, type) == offsetof(CUdevResource, type));
static_assert(offsetof(DeviceResource, sm_count) == offsetof(CUdevResource, sm));
#endif

TEST(DriverAbi, IsThatOfTheHeaderWhereThereIsOne) { EXPECT_GE(CUDA_VERSION, 12000); }

}  // namespace
}  // namespace bubblesim::capture::cuda

#else
TEST(DriverAbi, IsThatOfTheHeaderWhereThereIsOne) { GTEST_SKIP() << "no cuda.h"; }
#endif
