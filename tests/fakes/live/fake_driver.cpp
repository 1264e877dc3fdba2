// A libcuda.so.1 without a device, with the functions that the gate stands before. It writes
// each call that reaches it into the file FAKE_DRIVER_LOG: "PID SYMBOL", lookups with who asked.
// Work takes FAKE_DRIVER_KERNEL_US of its stream, side calls FAKE_DRIVER_SIDE_US of the caller.
// Threads begin on device FAKE_DRIVER_GPU, of those that CUDA_VISIBLE_DEVICES shows by numbers. As
// in NVIDIA's, what cuGetProcAddress gives is not what the loader finds.
//
// Built with FAKE_DRIVER_NO_V2 it has no cuGetProcAddress_v2, as before CUDA 12.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <unistd.h>

#include "capture/live/interpose/driver_types.hpp"
#include "capture/live/interpose/hook_list.hpp"

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace bubblesim::capture::interpose;
using Clock = std::chrono::steady_clock;

struct Driver {
  std::mutex mutex;
  std::map<Stream, Clock::time_point> busy_until;
  std::map<Handle, Clock::time_point> event_ready;
  std::map<Stream, int> capturing;
  std::uintptr_t handles = 0x1000;
  std::atomic<bool> context_is_gone{false};
};
Driver& driver() {
  static Driver* const one = new Driver;
  return *one;
}

int log_call(const char* symbol) {
  static const char* const path = std::getenv("FAKE_DRIVER_LOG");
  if (path == nullptr) return 0;
  const std::string line = std::to_string(::getpid()) + " " + symbol + "\n";
  const int file = ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::write(file, line.data(), line.size()) < 0) return 1;
  return ::close(file);
}

/// What the gate itself asks of the driver before and after a launch.
void take_time() {
  static const char* const text = std::getenv("FAKE_DRIVER_SIDE_US");
  if (text != nullptr) ::usleep(static_cast<useconds_t>(std::atoi(text)));
}

int work(const char* symbol, Stream stream) {
  static const char* const text = std::getenv("FAKE_DRIVER_KERNEL_US");
  const std::chrono::microseconds length(text == nullptr ? 0 : std::atoi(text));
  {
    const std::lock_guard lock(driver().mutex);
    Clock::time_point& busy = driver().busy_until[stream];
    busy = std::max(busy, Clock::now()) + length;
  }
  return log_call(symbol);
}

/// With the file that the call came from.
void log_lookup(const char* symbol, void* caller) {
  Dl_info info{};
  const bool known = ::dladdr(caller, &info) != 0 && info.dli_fname != nullptr;
  const std::string path = known ? info.dli_fname : "?";
  log_call((std::string(symbol) + " from " + path.substr(path.rfind('/') + 1)).c_str());
}

/// Nodes of the one graph there is: two kernels, a copy, a child graph with one kernel more.
constexpr std::uintptr_t kGraph = 0x900, kChild = 0x990;

}  // namespace

// Twice: as cuGetProcAddress gives it, and as the loader finds it.
#define FAKE_UNPACK(...) __VA_ARGS__
#define FAKE_FORM(symbol, stream, params, args)                       \
  static int inner_##symbol params {                                  \
    [[maybe_unused]] auto used = [&] { return std::tuple args; };     \
    return work(#symbol, stream);                                     \
  }                                                                   \
  FAKE_EXPORT int symbol params { return inner_##symbol args; }
#define FAKE_STREAM(base, version, api, since, kind, params, args) \
  FAKE_FORM(base##version, s, params, args)                        \
  FAKE_FORM(base##version##_ptsz, s, params, args)
BUBBLESIM_GATE_LAUNCHES(FAKE_STREAM)
BUBBLESIM_GATE_GRAPH_LAUNCHES(FAKE_STREAM)
BUBBLESIM_GATE_COPIES(FAKE_STREAM)
#define FAKE_CONFIGURED(base, version, api, since, kind, params, args) \
  FAKE_FORM(base##version, c->stream, params, args)                    \
  FAKE_FORM(base##version##_ptsz, c->stream, params, args)
BUBBLESIM_GATE_CONFIGURED_LAUNCHES(FAKE_CONFIGURED)
#define FAKE_INSTANTIATE(symbol, api, since, per_thread, params, args)   \
  static int inner_##symbol params {                                     \
    [[maybe_unused]] auto used = [&] { return std::tuple args; };        \
    const std::lock_guard lock(driver().mutex);                          \
    *x = reinterpret_cast<Handle>(driver().handles += 8);                \
    return log_call(#symbol);                                            \
  }                                                                      \
  FAKE_EXPORT int symbol params { return inner_##symbol args; }
BUBBLESIM_GATE_INSTANTIATIONS(FAKE_INSTANTIATE)

FAKE_EXPORT int cuInit(unsigned) { return 0; }
FAKE_EXPORT int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
FAKE_EXPORT int cuGraphExecDestroy(Handle) { return log_call("cuGraphExecDestroy"); }

FAKE_EXPORT int cuGraphGetNodes(Handle graph, Handle* nodes, std::size_t* count) {
  const bool child = graph == reinterpret_cast<Handle>(kChild);
  const std::size_t there = child ? 1 : 4;
  if (nodes == nullptr) {
    *count = there;
    return 0;
  }
  for (std::size_t i = 0; i < there; ++i) {
    nodes[i] = reinterpret_cast<Handle>((child ? kChild : kGraph) + 1 + i);
  }
  return 0;
}
FAKE_EXPORT int cuGraphNodeGetType(Handle node, int* type) {
  const auto value = reinterpret_cast<std::uintptr_t>(node);
  *type = value == kGraph + 3 ? 1 : value == kGraph + 4 ? 4 : 0;
  return 0;
}
FAKE_EXPORT int cuGraphKernelNodeGetParams_v2(Handle, KernelNode* kernel) {
  *kernel = {};
  kernel->grid[0] = 10;
  kernel->grid[1] = kernel->grid[2] = 1;
  kernel->block[0] = 64;
  kernel->block[1] = kernel->block[2] = 1;
  return 0;
}
FAKE_EXPORT int cuGraphChildGraphNodeGetGraph(Handle, Handle* graph) {
  *graph = reinterpret_cast<Handle>(kChild);
  return 0;
}
FAKE_EXPORT int cuFuncGetName(const char** name, Handle function) {
  const auto handle = reinterpret_cast<std::uintptr_t>(function);
  *name = handle == 0xCC0   ? "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LLv"
          : handle == 0xCD0 ? "_ZN4vllm26cross_device_reduce_1stageIfLi8EEEvPf"
                            : "gemm";
  return 0;
}

FAKE_EXPORT int cuStreamBeginCapture_v2(Stream stream, int) {
  const std::lock_guard lock(driver().mutex);
  driver().capturing[stream] = 1;
  return 0;
}
FAKE_EXPORT int cuStreamEndCapture(Stream stream, Handle* graph) {
  const std::lock_guard lock(driver().mutex);
  driver().capturing[stream] = 0;
  *graph = reinterpret_cast<Handle>(kGraph);
  return 0;
}
FAKE_EXPORT int cuStreamIsCapturing(Stream stream, int* status) {
  take_time();
  const std::lock_guard lock(driver().mutex);
  *status = driver().capturing[stream];
  return 0;
}
FAKE_EXPORT int cuStreamIsCapturing_ptsz(Stream stream, int* status) {
  return cuStreamIsCapturing(stream, status);
}

namespace {

/// Contexts of devices: 0xC0 of the first, 0x1C0 of the next.
int& current_device() {
  static const char* const text = std::getenv("FAKE_DRIVER_GPU");
  static thread_local int current = text == nullptr ? 0 : std::atoi(text);
  return current;
}

/// The GPU that the process sees as this device.
int gpu_of(int device) {
  const char* shown = std::getenv("CUDA_VISIBLE_DEVICES");
  for (int left = device; shown != nullptr && left > 0; --left) {
    shown = std::strchr(shown, ',');
    if (shown != nullptr) ++shown;
  }
  return shown == nullptr || *shown < '0' || *shown > '9' ? device : std::atoi(shown);
}

}  // namespace

FAKE_EXPORT int cuCtxGetCurrent(Handle* context) {
  *context = reinterpret_cast<Handle>(std::uintptr_t{0xC0} + 0x100U * current_device());
  return 0;
}
FAKE_EXPORT int cuCtxSetCurrent(Handle context) {
  current_device() = static_cast<int>(reinterpret_cast<std::uintptr_t>(context) >> 8U);
  return 0;
}
FAKE_EXPORT int cuCtxDestroy_v2(Handle) {
  driver().context_is_gone = true;
  return log_call("cuCtxDestroy_v2");
}
FAKE_EXPORT int cuDevicePrimaryCtxReset(int) { return cuCtxDestroy_v2(nullptr); }
FAKE_EXPORT int cuDevicePrimaryCtxReset_v2(int) { return cuCtxDestroy_v2(nullptr); }
FAKE_EXPORT int cuDevicePrimaryCtxRelease(int) { return cuCtxDestroy_v2(nullptr); }
FAKE_EXPORT int cuDevicePrimaryCtxRelease_v2(int) { return cuCtxDestroy_v2(nullptr); }
FAKE_EXPORT int cuCtxGetDevice(int* device) {
  *device = current_device();
  return 0;
}
FAKE_EXPORT int cuDeviceGetUuid_v2(char* uuid, int device) {
  std::memset(uuid, 0x11 * (gpu_of(device) + 1), 16);
  return 0;
}
FAKE_EXPORT int cuEventCreate(Handle* event, unsigned) {
  const std::lock_guard lock(driver().mutex);
  *event = reinterpret_cast<Handle>(driver().handles += 8);
  return 0;
}
FAKE_EXPORT int cuEventRecord(Handle event, Stream stream) {
  take_time();
  const std::lock_guard lock(driver().mutex);
  driver().event_ready[event] = driver().busy_until[stream];
  return 0;
}
// As NVIDIA's may: an event of a context that is gone points to nothing.
FAKE_EXPORT int cuEventQuery(Handle event) {
  if (driver().context_is_gone) std::abort();
  const std::lock_guard lock(driver().mutex);
  return Clock::now() < driver().event_ready[event] ? kCuNotReady : kCuSuccess;
}
FAKE_EXPORT int cuThreadExchangeStreamCaptureMode(int*) { return 0; }

namespace {

void* inner_of(const char* api, int version, bool per_thread) {
  void* found = nullptr;
#define FAKE_PAIR(base, suffix, api_name, since, kind, params, args)                       \
  if (std::strcmp(api, #api_name) == 0 && version >= since) {                              \
    found = per_thread ? reinterpret_cast<void*>(&inner_##base##suffix##_ptsz)             \
                       : reinterpret_cast<void*>(&inner_##base##suffix);                   \
  }
  BUBBLESIM_GATE_STREAM_CALLS(FAKE_PAIR)
#define FAKE_ONE(symbol, api_name, since, own, params, args)                     \
  if (std::strcmp(api, #api_name) == 0 && version >= since && own <= per_thread) \
    found = reinterpret_cast<void*>(&inner_##symbol);
  BUBBLESIM_GATE_INSTANTIATIONS(FAKE_ONE)
  return found;
}

int lookup(const char* api, void** found, int version, std::uint64_t flags);

int lookup_v1(const char* api, void** found, int version, std::uint64_t flags) {
  return lookup(api, found, version, flags) == 0 ? 0 : kCuNotFound;
}
// As the driver: an unknown name is no error here, the status says it.
int lookup_v2(const char* api, void** found, int version, std::uint64_t flags, int* status) {
  const int result = lookup(api, found, version, flags);
  if (status != nullptr) *status = result == 0 ? 0 : 1;  // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
  return 0;
}

int lookup(const char* api, void** found, int version, std::uint64_t flags) {
  *found = inner_of(api, version, (flags & kPerThreadStreams) != 0);
  if (std::strcmp(api, "cuGetProcAddress") == 0) {
    *found = version >= 12000 ? reinterpret_cast<void*>(&lookup_v2)
                              : reinterpret_cast<void*>(&lookup_v1);
  }
  if (std::strcmp(api, "cuInit") == 0) *found = reinterpret_cast<void*>(&cuInit);
  return *found == nullptr ? 1 : 0;
}

}  // namespace

FAKE_EXPORT int cuGetProcAddress(const char* api, void** found, int version, std::uint64_t flags) {
  log_lookup("cuGetProcAddress", __builtin_return_address(0));
  return lookup_v1(api, found, version, flags);
}

#ifndef FAKE_DRIVER_NO_V2
FAKE_EXPORT int cuGetProcAddress_v2(const char* api, void** found, int version,
                                    std::uint64_t flags, int* status) {
  log_lookup("cuGetProcAddress_v2", __builtin_return_address(0));
  return lookup_v2(api, found, version, flags, status);
}
#endif
