// The driver's functions that the gate hooks: symbol, name and version by which cuGetProcAddress
// knows it, parameters. cudaTypedefs.h has the versions.
//
// Each line of X is one function and, with _ptsz, its form for the thread's own default stream.
// Forms of before CUDA 4 (32-bit addresses) are not listed: nothing that runs on CUDA 12 asks for
// them.
#pragma once

#include <cstdint>

#define BUBBLESIM_GATE_COPIES(X)                                                                   \
  X(cuMemcpyAsync, , cuMemcpyAsync, 4000, kCopy, (Address a, Address b, size_t n, Stream s),       \
    (a, b, n, s))                                                                                  \
  X(cuMemcpyPeerAsync, , cuMemcpyPeerAsync, 4000, kCopy,                                           \
    (Address a, Handle b, Address c, Handle d, size_t n, Stream s), (a, b, c, d, n, s))            \
  X(cuMemcpyHtoDAsync, _v2, cuMemcpyHtoDAsync, 3020, kCopy,                                        \
    (Address a, const void* b, size_t n, Stream s), (a, b, n, s))                                  \
  X(cuMemcpyDtoHAsync, _v2, cuMemcpyDtoHAsync, 3020, kCopy,                                        \
    (void* a, Address b, size_t n, Stream s), (a, b, n, s))                                        \
  X(cuMemcpyDtoDAsync, _v2, cuMemcpyDtoDAsync, 3020, kCopy,                                        \
    (Address a, Address b, size_t n, Stream s), (a, b, n, s))                                      \
  X(cuMemcpyHtoAAsync, _v2, cuMemcpyHtoAAsync, 3020, kCopy,                                        \
    (Handle a, size_t b, const void* c, size_t n, Stream s), (a, b, c, n, s))                      \
  X(cuMemcpyAtoHAsync, _v2, cuMemcpyAtoHAsync, 3020, kCopy,                                        \
    (void* a, Handle b, size_t c, size_t n, Stream s), (a, b, c, n, s))                            \
  X(cuMemcpy2DAsync, _v2, cuMemcpy2DAsync, 3020, kCopy, (const void* a, Stream s), (a, s))         \
  X(cuMemcpy3DAsync, _v2, cuMemcpy3DAsync, 3020, kCopy, (const void* a, Stream s), (a, s))         \
  X(cuMemcpy3DPeerAsync, , cuMemcpy3DPeerAsync, 4000, kCopy, (const void* a, Stream s), (a, s))    \
  X(cuMemcpyBatchAsync, , cuMemcpyBatchAsync, 12080, kCopy,                                        \
    (Address * a, Address * b, size_t * c, size_t d, void* e, size_t* f, size_t g, size_t* h,      \
     Stream s), (a, b, c, d, e, f, g, h, s))                                                       \
  X(cuMemcpyBatchAsync, _v2, cuMemcpyBatchAsync, 13000, kCopy,                                     \
    (Address * a, Address * b, size_t * c, size_t d, void* e, size_t* f, size_t g, Stream s),      \
    (a, b, c, d, e, f, g, s))                                                                      \
  X(cuMemcpy3DBatchAsync, , cuMemcpy3DBatchAsync, 12080, kCopy,                                    \
    (size_t a, void* b, size_t* c, unsigned long long d, Stream s), (a, b, c, d, s))               \
  X(cuMemcpy3DBatchAsync, _v2, cuMemcpy3DBatchAsync, 13000, kCopy,                                 \
    (size_t a, void* b, unsigned long long c, Stream s), (a, b, c, s))                             \
  X(cuMemsetD8Async, , cuMemsetD8Async, 3020, kMemset,                                             \
    (Address a, unsigned char b, size_t n, Stream s), (a, b, n, s))                                \
  X(cuMemsetD16Async, , cuMemsetD16Async, 3020, kMemset,                                           \
    (Address a, unsigned short b, size_t n, Stream s), (a, b, n, s))                               \
  X(cuMemsetD32Async, , cuMemsetD32Async, 3020, kMemset,                                           \
    (Address a, unsigned b, size_t n, Stream s), (a, b, n, s))                                     \
  X(cuMemsetD2D8Async, , cuMemsetD2D8Async, 3020, kMemset,                                         \
    (Address a, size_t b, unsigned char c, size_t w, size_t h, Stream s), (a, b, c, w, h, s))      \
  X(cuMemsetD2D16Async, , cuMemsetD2D16Async, 3020, kMemset,                                       \
    (Address a, size_t b, unsigned short c, size_t w, size_t h, Stream s), (a, b, c, w, h, s))     \
  X(cuMemsetD2D32Async, , cuMemsetD2D32Async, 3020, kMemset,                                       \
    (Address a, size_t b, unsigned c, size_t w, size_t h, Stream s), (a, b, c, w, h, s))

#define BUBBLESIM_GATE_LAUNCHES(X)                                                                 \
  X(cuLaunchKernel, , cuLaunchKernel, 4000, kKernel,                                               \
    (Handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,       \
     unsigned m, Stream s, void** p, void** e), (f, gx, gy, gz, bx, by, bz, m, s, p, e))           \
  X(cuLaunchCooperativeKernel, , cuLaunchCooperativeKernel, 9000, kKernel,                         \
    (Handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,       \
     unsigned m, Stream s, void** p), (f, gx, gy, gz, bx, by, bz, m, s, p))

#define BUBBLESIM_GATE_CONFIGURED_LAUNCHES(X)                                                      \
  X(cuLaunchKernelEx, , cuLaunchKernelEx, 11060, kKernel,                                          \
    (const LaunchConfig* c, Handle f, void** p, void** e), (c, f, p, e))

#define BUBBLESIM_GATE_GRAPH_LAUNCHES(X)                                                           \
  X(cuGraphLaunch, , cuGraphLaunch, 10000, kKernel, (Handle g, Stream s), (g, s))

#define BUBBLESIM_GATE_STREAM_CALLS(X)                                                             \
  BUBBLESIM_GATE_LAUNCHES(X)                                                                       \
  BUBBLESIM_GATE_CONFIGURED_LAUNCHES(X)                                                            \
  BUBBLESIM_GATE_GRAPH_LAUNCHES(X)                                                                 \
  BUBBLESIM_GATE_COPIES(X)

// These calls make an executable graph of a graph: its kernels are counted there. Until CUDA 11.8
// cuGraphInstantiate took five parameters; since 12.0 the name means cuGraphInstantiateWithFlags,
// which takes three. All parameters are in registers, so handing on five serves both.
#define BUBBLESIM_GATE_INSTANTIATIONS(Y)                                                           \
  Y(cuGraphInstantiate, cuGraphInstantiate, 10000, false,                                          \
    (Handle * x, Handle g, void* a, void* b, size_t c), (x, g, a, b, c))                           \
  Y(cuGraphInstantiate_v2, cuGraphInstantiate, 11000, false,                                       \
    (Handle * x, Handle g, void* a, void* b, size_t c), (x, g, a, b, c))                           \
  Y(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, false,                        \
    (Handle * x, Handle g, unsigned long long a), (x, g, a))                                       \
  Y(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000, false,                      \
    (Handle * x, Handle g, void* a), (x, g, a))                                                    \
  Y(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams, 12000, true,                  \
    (Handle * x, Handle g, void* a), (x, g, a))

// Others: symbol, name, version.
#define BUBBLESIM_GATE_OTHERS(Z)                                                                   \
  Z(cuGraphExecDestroy, cuGraphExecDestroy, 10000, (Handle x), (x))                                \
  Z(cuCtxDestroy_v2, cuCtxDestroy, 4000, (Handle x), (x))                                          \
  Z(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 7000, (int d), (d))                          \
  Z(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, 11000, (int d), (d))                      \
  Z(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease, 7000, (int d), (d))                      \
  Z(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, 11000, (int d), (d))                  \
  Z(cuGetProcAddress, cuGetProcAddress, 11030,                                                     \
    (const char* name, void** found, int version, std::uint64_t flags),                            \
    (name, found, version, flags))                                                                 \
  Z(cuGetProcAddress_v2, cuGetProcAddress, 12000,                                                  \
    (const char* name, void** found, int version, std::uint64_t flags, int* status),               \
    (name, found, version, flags, status))
