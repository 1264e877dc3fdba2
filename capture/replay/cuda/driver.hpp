// The functions of CUDA's driver that the device calls, found at run time: nothing is linked.
#pragma once

#include <memory>
#include <string>

#include "capture/replay/cuda/driver_abi.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture::cuda {

// name in the table; its name in libcuda; its arguments. Needed: a driver of CUDA 12 or later.
#define BUBBLESIM_CUDA_NEEDED(CALL)                                                               \
  CALL(init, cuInit, (unsigned flags))                                                            \
  CALL(driver_version, cuDriverGetVersion, (int* version))                                        \
  CALL(device_count, cuDeviceGetCount, (int* count))                                              \
  CALL(device_get, cuDeviceGet, (DeviceHandle * device, int index))                               \
  CALL(device_name, cuDeviceGetName, (char* name, int bytes, DeviceHandle device))                \
  CALL(device_uuid, cuDeviceGetUuid_v2, (Uuid * uuid, DeviceHandle device))                       \
  CALL(device_attribute, cuDeviceGetAttribute, (int* value, int attribute, DeviceHandle device))  \
  CALL(primary_retain, cuDevicePrimaryCtxRetain, (ContextHandle * context, DeviceHandle device))  \
  CALL(primary_release, cuDevicePrimaryCtxRelease_v2, (DeviceHandle device))                      \
  CALL(set_current, cuCtxSetCurrent, (ContextHandle context))                                     \
  CALL(priority_range, cuCtxGetStreamPriorityRange, (int* least, int* greatest))                  \
  CALL(library_load, cuLibraryLoadData,                                                           \
       (LibraryHandle * library, const void* image, int* jit, void** jit_values, unsigned jits,   \
        int* options, void** option_values, unsigned option_count))                               \
  CALL(library_unload, cuLibraryUnload, (LibraryHandle library))                                  \
  CALL(library_kernel, cuLibraryGetKernel,                                                        \
       (KernelHandle * kernel, LibraryHandle library, const char* name))                          \
  CALL(set_kernel_attribute, cuKernelSetAttribute,                                                \
       (int attribute, int value, KernelHandle kernel, DeviceHandle device))                      \
  CALL(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                    \
       (int* blocks, KernelHandle kernel, int threads, std::size_t shared_bytes))                 \
  CALL(launch_kernel, cuLaunchKernel,                                                             \
       (KernelHandle kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
        unsigned block_y, unsigned block_z, unsigned shared_bytes, StreamHandle stream,           \
        void** arguments, void** extra))                                                          \
  CALL(memory_info, cuMemGetInfo_v2, (std::size_t* free, std::size_t* total))                     \
  CALL(allocate, cuMemAlloc_v2, (DevicePointer * memory, std::size_t bytes))                      \
  CALL(release, cuMemFree_v2, (DevicePointer memory))                                             \
  CALL(host_allocate, cuMemHostAlloc, (void** memory, std::size_t bytes, unsigned flags))         \
  CALL(host_release, cuMemFreeHost, (void* memory))                                               \
  CALL(host_device_pointer, cuMemHostGetDevicePointer_v2,                                         \
       (DevicePointer * pointer, void* memory, unsigned flags))                                   \
  CALL(set_bytes, cuMemsetD8Async,                                                                \
       (DevicePointer memory, unsigned char value, std::size_t bytes, StreamHandle stream))       \
  CALL(set_words, cuMemsetD32Async,                                                               \
       (DevicePointer memory, unsigned value, std::size_t words, StreamHandle stream))            \
  CALL(copy_to_device, cuMemcpyHtoDAsync_v2,                                                      \
       (DevicePointer to, const void* from, std::size_t bytes, StreamHandle stream))              \
  CALL(copy_to_host, cuMemcpyDtoHAsync_v2,                                                        \
       (void* to, DevicePointer from, std::size_t bytes, StreamHandle stream))                    \
  CALL(copy_on_device, cuMemcpyDtoDAsync_v2,                                                      \
       (DevicePointer to, DevicePointer from, std::size_t bytes, StreamHandle stream))            \
  CALL(stream_create, cuStreamCreateWithPriority,                                                 \
       (StreamHandle * stream, unsigned flags, int priority))                                     \
  CALL(stream_destroy, cuStreamDestroy_v2, (StreamHandle stream))                                 \
  CALL(stream_query, cuStreamQuery, (StreamHandle stream))                                        \
  CALL(stream_wait_event, cuStreamWaitEvent,                                                      \
       (StreamHandle stream, EventHandle event, unsigned flags))                                  \
  CALL(event_create, cuEventCreate, (EventHandle * event, unsigned flags))                        \
  CALL(event_record, cuEventRecord, (EventHandle event, StreamHandle stream))                     \
  CALL(event_query, cuEventQuery, (EventHandle event))                                            \
  CALL(event_destroy, cuEventDestroy_v2, (EventHandle event))                                     \
  CALL(begin_capture, cuStreamBeginCapture_v2, (StreamHandle stream, int mode))                   \
  CALL(end_capture, cuStreamEndCapture, (StreamHandle stream, GraphHandle * graph))               \
  CALL(graph_destroy, cuGraphDestroy, (GraphHandle graph))                                        \
  CALL(graph_instantiate, cuGraphInstantiateWithFlags,                                            \
       (GraphExecHandle * exec, GraphHandle graph, unsigned long long flags))                     \
  CALL(graph_launch, cuGraphLaunch, (GraphExecHandle exec, StreamHandle stream))                  \
  CALL(graph_exec_destroy, cuGraphExecDestroy, (GraphExecHandle exec))

// These are needed only if a job asks for SMs of its own: green contexts, of CUDA 12.5 and later.
#define BUBBLESIM_CUDA_WANTED(CALL)                                                               \
  CALL(error_string, cuGetErrorString, (Status status, const char** text))                        \
  CALL(device_resource, cuDeviceGetDevResource,                                                   \
       (DeviceHandle device, DeviceResource * resource, int type))                                \
  CALL(split_sms, cuDevSmResourceSplitByCount,                                                    \
       (DeviceResource * result, unsigned* groups, const DeviceResource* input,                   \
        DeviceResource* remaining, unsigned flags, unsigned sms))                                 \
  CALL(resource_desc, cuDevResourceGenerateDesc,                                                  \
       (ResourceDesc * desc, DeviceResource * resources, unsigned count))                         \
  CALL(green_create, cuGreenCtxCreate,                                                            \
       (GreenHandle * green, ResourceDesc desc, DeviceHandle device, unsigned flags))             \
  CALL(green_destroy, cuGreenCtxDestroy, (GreenHandle green))                                     \
  CALL(green_resource, cuGreenCtxGetDevResource,                                                  \
       (GreenHandle green, DeviceResource * resource, int type))                                  \
  CALL(green_stream, cuGreenCtxStreamCreate,                                                      \
       (StreamHandle * stream, GreenHandle green, unsigned flags, int priority))

/// Pointers; those of BUBBLESIM_CUDA_WANTED are null where the driver has no such function.
struct Driver {
#define BUBBLESIM_CUDA_POINTER(name, symbol, arguments) Status(*name) arguments = nullptr;
  BUBBLESIM_CUDA_NEEDED(BUBBLESIM_CUDA_POINTER)
  BUBBLESIM_CUDA_WANTED(BUBBLESIM_CUDA_POINTER)
#undef BUBBLESIM_CUDA_POINTER

  [[nodiscard]] bool has_green_contexts() const {
    return device_resource != nullptr && split_sms != nullptr && resource_desc != nullptr &&
           green_create != nullptr && green_destroy != nullptr && green_resource != nullptr &&
           green_stream != nullptr;
  }
  /// `what` as it failed: "cuMemAlloc_v2: out of memory (2)".
  [[nodiscard]] std::string failure(const char* what, Status status) const;
};

/// Finds the driver and its functions; the library stays loaded, as with CUDA's own runtime.
/// Faults: no such library; a function that every driver of CUDA 12 has is missing.
[[nodiscard]] Result<Driver> find_driver(const std::string& path);

/// `status` as a Result; the fault's place is `where` (an operation's name), if not empty.
[[nodiscard]] Result<void> checked(const Driver& driver, Status status, const char* what,
                                   const std::string& where = {});

/// Gives a handle back to the driver, which outlives it.
template <auto kRelease>
struct Release {
  const Driver* driver = nullptr;
  template <class Object>
  void operator()(Object* object) const {
    (void)(driver->*kRelease)(object);
  }
};
using OwnEvent = std::unique_ptr<EventState, Release<&Driver::event_destroy>>;
using OwnStream = std::unique_ptr<StreamState, Release<&Driver::stream_destroy>>;
using OwnGraph = std::unique_ptr<GraphState, Release<&Driver::graph_destroy>>;
using OwnGraphExec = std::unique_ptr<GraphExecState, Release<&Driver::graph_exec_destroy>>;
using OwnHostMemory = std::unique_ptr<void, Release<&Driver::host_release>>;

[[nodiscard]] Result<OwnEvent> make_event(const Driver& driver);
/// A stream of the current context, without priority.
[[nodiscard]] Result<OwnStream> make_stream(const Driver& driver);
/// Pinned zeros; `address`: where the device finds them.
[[nodiscard]] Result<OwnHostMemory> make_shared_memory(const Driver& driver, std::size_t bytes,
                                                       DevicePointer& address);

}  // namespace bubblesim::capture::cuda

/// Calls a function of the driver and returns the fault of the enclosing function if it fails.
#define BUBBLESIM_CUDA(driver, name, ...) \
  BUBBLESIM_RETURN_IF_ERROR(              \
      ::bubblesim::capture::cuda::checked((driver), (driver).name(__VA_ARGS__), #name))
