// Our list of the driver's functions against NVIDIA's own header, while compiling: each form has
// the version, and parameters of the sizes, that the header gives it.
#include <cudaTypedefs.h>
#include <gtest/gtest.h>

#include <type_traits>

#include "capture/live/interpose/driver_types.hpp"
#include "capture/live/interpose/hook_list.hpp"

// The header's names for the newest forms, which the list's names are not.
#undef cuMemcpyHtoDAsync
#undef cuMemcpyDtoHAsync
#undef cuMemcpyDtoDAsync
#undef cuMemcpyHtoAAsync
#undef cuMemcpyAtoHAsync
#undef cuMemcpy2DAsync
#undef cuMemcpy3DAsync
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync

namespace bubblesim::capture::interpose {
namespace {

/// Passed alike: both pointers, or both integers of the same size.
template <class A, class B>
constexpr bool kAlike = std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B);

template <class A, class B>
constexpr bool kSame = false;
template <class... A, class... B>
  requires(sizeof...(A) == sizeof...(B))
constexpr bool kSame<int (*)(A...), CUresult (*)(B...)> = (kAlike<A, B> && ...);

#define HELD_TO(params, theirs)                          \
  {                                                      \
    using Mine = int(*) params;                          \
    static_assert(kSame<Mine, theirs>, #theirs);         \
  }
#define CHECK(base, version, api, since, kind, params, args) \
  HELD_TO(params, PFN_##api##_v##since)                      \
  HELD_TO(params, MIRROR_OWN(api, since))
// Forms for the thread's own stream came with CUDA 7, or with the function.
#define MIRROR_OWN(api, since) MIRROR_OWN_##since(api)
#define MIRROR_OWN_3020(api) PFN_##api##_v7000_ptsz
#define MIRROR_OWN_4000(api) PFN_##api##_v7000_ptsz
#define MIRROR_OWN_9000(api) PFN_##api##_v9000_ptsz
#define MIRROR_OWN_10000(api) PFN_##api##_v10000_ptsz
#define MIRROR_OWN_11060(api) PFN_##api##_v11060_ptsz
#define MIRROR_OWN_12080(api) PFN_##api##_v12080_ptsz
#define MIRROR_OWN_13000(api) PFN_##api##_v13000_ptsz

TEST(Mirror, AgreesWithNvidiasHeader) {
  BUBBLESIM_GATE_STREAM_CALLS(CHECK)
  HELD_TO((Handle*, Handle, unsigned long long), PFN_cuGraphInstantiateWithFlags_v11040)
  HELD_TO((Handle*, Handle, void*), PFN_cuGraphInstantiateWithParams_v12000)
  HELD_TO((Handle*, Handle, void*), PFN_cuGraphInstantiateWithParams_v12000_ptsz)
  HELD_TO((const char*, void**, int, std::uint64_t), PFN_cuGetProcAddress_v11030)
  HELD_TO((const char*, void**, int, std::uint64_t, int*), PFN_cuGetProcAddress_v12000)
  static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
  static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
  static_assert(offsetof(KernelNode, block) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, blockDimX));
  static_assert(sizeof(KernelNode) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
  static_assert(kCuNotReady == CUDA_ERROR_NOT_READY && kCuNotFound == CUDA_ERROR_NOT_FOUND);
  static_assert(static_cast<int>(GraphNodeType::kChildGraph) == CU_GRAPH_NODE_TYPE_GRAPH);
  static_assert(kEventWithoutTiming == CU_EVENT_DISABLE_TIMING);
  static_assert(kCaptureModeRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
  static_assert(kPerThreadStreams == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
}

}  // namespace
}  // namespace bubblesim::capture::interpose
