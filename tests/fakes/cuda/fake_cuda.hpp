// A driver without a device: the part of libcuda.so.1 that the recorder and its tests need.
//
// cuInit loads CUDA_INJECTION64_PATH and calls InitializeInjection, as NVIDIA's driver does. Each
// stream has a timeline: work starts when it is launched or when the work before it ends, and takes
// the time that the caller gives. The tracer (the fake CUPTI) hears of every call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>

namespace fake {

enum class What : std::uint32_t {
  kKernel, kCopy, kMemset, kGraphLaunch, kGraphNode, kStreamSync, kDeviceSync, kEventRecord,
  kStreamWait, kAlloc, kFree, kContextEnds,
  kNodeCreated, kNodeCopied, kWaitValue, kWriteValue
};

/// One call of the job, and the work that the call put on the device.
struct Happening {
  What what = What::kKernel;
  std::uint32_t device = 0;
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;
  std::uint32_t thread = 0;
  const char* name = nullptr;
  std::uint64_t call_start = 0, call_end = 0;  ///< nanoseconds of CLOCK_REALTIME
  std::uint64_t start = 0, end = 0;            ///< of the work on the device, in the same unit
  std::uint64_t bytes = 0;
  std::uint64_t address = 0;
  std::uint32_t event = 0;
  std::uint64_t event_sync = 0;
  std::uint64_t node = 0, copy_of = 0;         ///< of graphs
};

using Tracer = void (*)(const Happening&);

/// A kernel that takes `ns`.
struct Launch {
  std::uint32_t device = 0;
  std::uint32_t stream = 7;
  const char* name = "kernel";
  std::uint64_t ns = 2000;
  std::uint64_t graph_node = 0;
};

[[nodiscard]] inline std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace fake

extern "C" {
int cuInit(unsigned flags);
int cuDriverGetVersion(int* version);

/// nullptr: no tracer. Returns 0 if the driver was not initialised.
int fake_cuda_set_tracer(fake::Tracer tracer);
/// Is there a tracer?
int fake_cuda_is_traced();

/// All calls below return 0, or 3 (not initialised) before cuInit and in a forked child, as the
/// driver does.
int fake_cuda_launch(const fake::Launch* launch);
int fake_cuda_graph_launch(const fake::Launch* node, std::size_t nodes);
/// The calling thread puts a kernel into a graph.
int fake_cuda_capture_kernel(std::uint64_t node);
/// Instantiating a graph copies its nodes: one call a node.
int fake_cuda_copy_node(std::uint64_t node, std::uint64_t copy_of);
int fake_cuda_copy(std::uint32_t device, std::uint32_t stream, std::uint64_t bytes);
int fake_cuda_memset(std::uint32_t device, std::uint32_t stream, std::uint64_t bytes);
int fake_cuda_stream_sync(std::uint32_t device, std::uint32_t stream);
/// Waits for all streams of the device.
int fake_cuda_device_sync(std::uint32_t device);
int fake_cuda_event_record(std::uint32_t device, std::uint32_t stream, std::uint32_t event);
int fake_cuda_stream_wait(std::uint32_t device, std::uint32_t stream, std::uint32_t event);
/// cuStreamWaitValue32 and cuStreamWriteValue32; the fake stream does not wait.
int fake_cuda_stream_value(std::uint32_t stream, std::uint64_t address, std::uint32_t value,
                           int waits);
int fake_cuda_malloc(std::uint64_t bytes, std::uint64_t* address);
int fake_cuda_free(std::uint64_t address);
int fake_cuda_destroy_context(std::uint32_t device);
}
