// Our mirror of CUPTI's binary interface against NVIDIA's own header. All of it is checked while
// compiling: the newest record is compared, since the older ones are its prefixes.
#include <cupti.h>
#include <gtest/gtest.h>

#include "capture/record/cupti/api.hpp"
#include "capture/record/cupti/traced_calls.hpp"

namespace bubblesim::capture::cupti {
namespace {

// Field `mine` of `Mine` lies where field `theirs` of `Theirs` does, and is as wide.
#define SAME(Mine, mine, Theirs, theirs)                                            \
  static_assert(offsetof(Mine, mine) == offsetof(Theirs, theirs), #Mine "." #mine); \
  static_assert(sizeof(Mine::mine) == sizeof(Theirs{}.theirs), #Mine "." #mine)
// `Mine` is a prefix of `Theirs`, which begins with the kind.
#define PREFIX(Mine, Theirs)                                                                      \
  static_assert(offsetof(Mine, kind) == offsetof(Theirs, kind) && sizeof(Mine) <= sizeof(Theirs), \
                #Mine)
#define EQUAL(mine, theirs) \
  static_assert(static_cast<std::uint64_t>(mine) == static_cast<std::uint64_t>(theirs), #mine)

SAME(KernelRecord, cache_config, CUpti_ActivityKernel10, cacheConfig);
SAME(KernelRecord, shared_memory_config, CUpti_ActivityKernel10, sharedMemoryConfig);
SAME(KernelRecord, registers_per_thread, CUpti_ActivityKernel10, registersPerThread);
SAME(KernelRecord, partitioned_cache_requested, CUpti_ActivityKernel10,
     partitionedGlobalCacheRequested);
SAME(KernelRecord, partitioned_cache_executed,
     CUpti_ActivityKernel10, partitionedGlobalCacheExecuted);
SAME(KernelRecord, start, CUpti_ActivityKernel10, start);
SAME(KernelRecord, end, CUpti_ActivityKernel10, end);
SAME(KernelRecord, completed, CUpti_ActivityKernel10, completed);
SAME(KernelRecord, device, CUpti_ActivityKernel10, deviceId);
SAME(KernelRecord, context, CUpti_ActivityKernel10, contextId);
SAME(KernelRecord, stream, CUpti_ActivityKernel10, streamId);
SAME(KernelRecord, static_shared_memory, CUpti_ActivityKernel10, staticSharedMemory);
SAME(KernelRecord, dynamic_shared_memory, CUpti_ActivityKernel10, dynamicSharedMemory);
SAME(KernelRecord, local_memory_per_thread, CUpti_ActivityKernel10, localMemoryPerThread);
SAME(KernelRecord, local_memory_total, CUpti_ActivityKernel10, localMemoryTotal);
SAME(KernelRecord, correlation, CUpti_ActivityKernel10, correlationId);
SAME(KernelRecord, grid_id, CUpti_ActivityKernel10, gridId);
SAME(KernelRecord, name, CUpti_ActivityKernel10, name);
SAME(KernelRecord, queued, CUpti_ActivityKernel10, queued);
SAME(KernelRecord, submitted, CUpti_ActivityKernel10, submitted);

SAME(CopyRecord, copy_kind, CUpti_ActivityMemcpy6, copyKind);
SAME(CopyRecord, source_kind, CUpti_ActivityMemcpy6, srcKind);
SAME(CopyRecord, target_kind, CUpti_ActivityMemcpy6, dstKind);
SAME(CopyRecord, flags, CUpti_ActivityMemcpy6, flags);
SAME(CopyRecord, bytes, CUpti_ActivityMemcpy6, bytes);
SAME(CopyRecord, start, CUpti_ActivityMemcpy6, start);
SAME(CopyRecord, end, CUpti_ActivityMemcpy6, end);
SAME(CopyRecord, device, CUpti_ActivityMemcpy6, deviceId);
SAME(CopyRecord, context, CUpti_ActivityMemcpy6, contextId);
SAME(CopyRecord, stream, CUpti_ActivityMemcpy6, streamId);
SAME(CopyRecord, correlation, CUpti_ActivityMemcpy6, correlationId);

SAME(PeerCopyRecord, copy_kind, CUpti_ActivityMemcpyPtoP4, copyKind);
SAME(PeerCopyRecord, source_kind, CUpti_ActivityMemcpyPtoP4, srcKind);
SAME(PeerCopyRecord, target_kind, CUpti_ActivityMemcpyPtoP4, dstKind);
SAME(PeerCopyRecord, flags, CUpti_ActivityMemcpyPtoP4, flags);
SAME(PeerCopyRecord, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
SAME(PeerCopyRecord, start, CUpti_ActivityMemcpyPtoP4, start);
SAME(PeerCopyRecord, end, CUpti_ActivityMemcpyPtoP4, end);
SAME(PeerCopyRecord, device, CUpti_ActivityMemcpyPtoP4, deviceId);
SAME(PeerCopyRecord, context, CUpti_ActivityMemcpyPtoP4, contextId);
SAME(PeerCopyRecord, stream, CUpti_ActivityMemcpyPtoP4, streamId);
SAME(PeerCopyRecord, source_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
SAME(PeerCopyRecord, source_context, CUpti_ActivityMemcpyPtoP4, srcContextId);
SAME(PeerCopyRecord, target_device, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
SAME(PeerCopyRecord, target_context, CUpti_ActivityMemcpyPtoP4, dstContextId);
SAME(PeerCopyRecord, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);

SAME(MemsetRecord, value, CUpti_ActivityMemset4, value);
SAME(MemsetRecord, bytes, CUpti_ActivityMemset4, bytes);
SAME(MemsetRecord, start, CUpti_ActivityMemset4, start);
SAME(MemsetRecord, end, CUpti_ActivityMemset4, end);
SAME(MemsetRecord, device, CUpti_ActivityMemset4, deviceId);
SAME(MemsetRecord, context, CUpti_ActivityMemset4, contextId);
SAME(MemsetRecord, stream, CUpti_ActivityMemset4, streamId);
SAME(MemsetRecord, correlation, CUpti_ActivityMemset4, correlationId);
SAME(MemsetRecord, flags, CUpti_ActivityMemset4, flags);
SAME(MemsetRecord, memory_kind, CUpti_ActivityMemset4, memoryKind);

SAME(SynchronizationRecord, type, CUpti_ActivitySynchronization2, type);
SAME(SynchronizationRecord, start, CUpti_ActivitySynchronization2, start);
SAME(SynchronizationRecord, end, CUpti_ActivitySynchronization2, end);
SAME(SynchronizationRecord, correlation, CUpti_ActivitySynchronization2, correlationId);
SAME(SynchronizationRecord, context, CUpti_ActivitySynchronization2, contextId);
SAME(SynchronizationRecord, stream, CUpti_ActivitySynchronization2, streamId);
SAME(SynchronizationRecord, event, CUpti_ActivitySynchronization2, cudaEventId);
SAME(SynchronizationRecord, event_sync, CUpti_ActivitySynchronization2, cudaEventSyncId);
SAME(SynchronizationRecord, return_value, CUpti_ActivitySynchronization2, returnValue);

SAME(CudaEventRecord, correlation, CUpti_ActivityCudaEvent2, correlationId);
SAME(CudaEventRecord, context, CUpti_ActivityCudaEvent2, contextId);
SAME(CudaEventRecord, stream, CUpti_ActivityCudaEvent2, streamId);
SAME(CudaEventRecord, event, CUpti_ActivityCudaEvent2, eventId);
SAME(CudaEventRecord, device, CUpti_ActivityCudaEvent2, deviceId);
SAME(CudaEventRecord, device_timestamp, CUpti_ActivityCudaEvent2, deviceTimestamp);
SAME(CudaEventRecord, event_sync, CUpti_ActivityCudaEvent2, cudaEventSyncId);

SAME(ApiRecord, id, CUpti_ActivityAPI, cbid);
SAME(ApiRecord, start, CUpti_ActivityAPI, start);
SAME(ApiRecord, end, CUpti_ActivityAPI, end);
SAME(ApiRecord, process, CUpti_ActivityAPI, processId);
SAME(ApiRecord, thread, CUpti_ActivityAPI, threadId);
SAME(ApiRecord, correlation, CUpti_ActivityAPI, correlationId);
SAME(ApiRecord, return_value, CUpti_ActivityAPI, returnValue);

SAME(OverheadRecord, overhead_kind, CUpti_ActivityOverhead3, overheadKind);
SAME(OverheadRecord, object_kind, CUpti_ActivityOverhead3, objectKind);
SAME(OverheadRecord, process, CUpti_ActivityOverhead3, objectId.pt.processId);
SAME(OverheadRecord, thread, CUpti_ActivityOverhead3, objectId.pt.threadId);
SAME(OverheadRecord, start, CUpti_ActivityOverhead3, start);
SAME(OverheadRecord, end, CUpti_ActivityOverhead3, end);

SAME(MemoryRecord, operation, CUpti_ActivityMemory4, memoryOperationType);
SAME(MemoryRecord, memory_kind, CUpti_ActivityMemory4, memoryKind);
SAME(MemoryRecord, correlation, CUpti_ActivityMemory4, correlationId);
SAME(MemoryRecord, address, CUpti_ActivityMemory4, address);
SAME(MemoryRecord, bytes, CUpti_ActivityMemory4, bytes);
SAME(MemoryRecord, timestamp, CUpti_ActivityMemory4, timestamp);
SAME(MemoryRecord, program_counter, CUpti_ActivityMemory4, PC);
SAME(MemoryRecord, process, CUpti_ActivityMemory4, processId);
SAME(MemoryRecord, device, CUpti_ActivityMemory4, deviceId);
SAME(MemoryRecord, context, CUpti_ActivityMemory4, contextId);
SAME(MemoryRecord, stream, CUpti_ActivityMemory4, streamId);

SAME(DeviceRecord, flags, CUpti_ActivityDevice5, flags);
SAME(DeviceRecord, memory_bandwidth, CUpti_ActivityDevice5, globalMemoryBandwidth);
SAME(DeviceRecord, memory_bytes, CUpti_ActivityDevice5, globalMemorySize);
SAME(DeviceRecord, constant_memory_bytes, CUpti_ActivityDevice5, constantMemorySize);
SAME(DeviceRecord, l2_bytes, CUpti_ActivityDevice5, l2CacheSize);
SAME(DeviceRecord, threads_per_warp, CUpti_ActivityDevice5, numThreadsPerWarp);
SAME(DeviceRecord, core_clock_khz, CUpti_ActivityDevice5, coreClockRate);
SAME(DeviceRecord, copy_engines, CUpti_ActivityDevice5, numMemcpyEngines);
SAME(DeviceRecord, multiprocessors, CUpti_ActivityDevice5, numMultiprocessors);
SAME(DeviceRecord, compute_major, CUpti_ActivityDevice5, computeCapabilityMajor);
SAME(DeviceRecord, compute_minor, CUpti_ActivityDevice5, computeCapabilityMinor);
SAME(DeviceRecord, id, CUpti_ActivityDevice5, id);
SAME(DeviceRecord, ecc_enabled, CUpti_ActivityDevice5, eccEnabled);
SAME(DeviceRecord, uuid, CUpti_ActivityDevice5, uuid);
SAME(DeviceRecord, name, CUpti_ActivityDevice5, name);

SAME(ContextRecord, context, CUpti_ActivityContext3, contextId);
SAME(ContextRecord, device, CUpti_ActivityContext3, deviceId);
SAME(ContextRecord, api, CUpti_ActivityContext3, computeApiKind);
SAME(ContextRecord, null_stream, CUpti_ActivityContext3, nullStreamId);

SAME(StreamRecord, context, CUpti_ActivityStream, contextId);
SAME(StreamRecord, stream, CUpti_ActivityStream, streamId);
SAME(StreamRecord, priority, CUpti_ActivityStream, priority);
SAME(StreamRecord, flag, CUpti_ActivityStream, flag);
SAME(StreamRecord, correlation, CUpti_ActivityStream, correlationId);

SAME(GraphRecord, correlation, CUpti_ActivityGraphTrace2, correlationId);
SAME(GraphRecord, start, CUpti_ActivityGraphTrace2, start);
SAME(GraphRecord, end, CUpti_ActivityGraphTrace2, end);
SAME(GraphRecord, device, CUpti_ActivityGraphTrace2, deviceId);
SAME(GraphRecord, graph, CUpti_ActivityGraphTrace2, graphId);
SAME(GraphRecord, context, CUpti_ActivityGraphTrace2, contextId);
SAME(GraphRecord, stream, CUpti_ActivityGraphTrace2, streamId);

SAME(SubscriberParams, struct_size, CUpti_SubscriberParams, structSize);
SAME(SubscriberParams, name, CUpti_SubscriberParams, subscriberName);
SAME(SubscriberParams, holder, CUpti_SubscriberParams, oldSubscriberName);
SAME(SubscriberParams, holder_size, CUpti_SubscriberParams, oldSubscriberSize);

SAME(CallbackData, site, CUpti_CallbackData, callbackSite);
SAME(CallbackData, function, CUpti_CallbackData, functionName);

SAME(CallbackData, parameters, CUpti_CallbackData, functionParams);
SAME(CallbackData, context, CUpti_CallbackData, context);
SAME(CallbackData, context_id, CUpti_CallbackData, contextUid);
SAME(CallbackData, correlation, CUpti_CallbackData, correlationId);
static_assert(sizeof(BatchOperation) == sizeof(CUstreamBatchMemOpParams));
static_assert(kStreamValueCalls[5].id == CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32_v2);
static_assert(kStreamValueCalls[9].id == CUPTI_DRIVER_TRACE_CBID_cuStreamBatchMemOp_v2);
SAME(KernelRecord, graph_node, CUpti_ActivityKernel10, graphNodeId);
SAME(ResourceData, descriptor, CUpti_ResourceData, resourceDescriptor);
SAME(GraphData, node, CUpti_GraphData, node);
SAME(GraphData, original_node, CUpti_GraphData, originalNode);
SAME(GraphData, node_type, CUpti_GraphData, nodeType);
static_assert(kGraphNodeKernel == CU_GRAPH_NODE_TYPE_KERNEL);

SAME(StateData, result, CUpti_StateData, notification.result);
SAME(StateData, message, CUpti_StateData, notification.message);

static_assert(offsetof(KernelRecord, grid) == offsetof(CUpti_ActivityKernel10, gridX));
static_assert(offsetof(KernelRecord, grid) + 8 == offsetof(CUpti_ActivityKernel10, gridZ));
static_assert(offsetof(KernelRecord, block) == offsetof(CUpti_ActivityKernel10, blockX));
static_assert(offsetof(KernelRecord, block) + 8 == offsetof(CUpti_ActivityKernel10, blockZ));
static_assert(sizeof(SubscriberParams) == CUpti_SubscriberParams_STRUCT_SIZE);

// Records of CUDA 11.2 end where ours do, or later; those without `event_sync` are named.
PREFIX(KernelRecord, CUpti_ActivityKernel5);
PREFIX(CopyRecord, CUpti_ActivityMemcpy4);
PREFIX(PeerCopyRecord, CUpti_ActivityMemcpyPtoP2);
PREFIX(MemsetRecord, CUpti_ActivityMemset3);
PREFIX(SynchronizationRecord, CUpti_ActivitySynchronization2);
PREFIX(CudaEventRecord, CUpti_ActivityCudaEvent2);
PREFIX(ApiRecord, CUpti_ActivityAPI);
PREFIX(OverheadRecord, CUpti_ActivityOverhead);
PREFIX(MemoryRecord, CUpti_ActivityMemory2);
PREFIX(DeviceRecord, CUpti_ActivityDevice2);
PREFIX(ContextRecord, CUpti_ActivityContext);
PREFIX(StreamRecord, CUpti_ActivityStream);
PREFIX(GraphRecord, CUpti_ActivityGraphTrace);
static_assert(offsetof(SynchronizationRecord, event_sync) == sizeof(CUpti_ActivitySynchronization));
static_assert(offsetof(CudaEventRecord, device) == sizeof(CUpti_ActivityCudaEvent));

EQUAL(Result::kSuccess, CUPTI_SUCCESS);
EQUAL(Result::kInvalidParameter, CUPTI_ERROR_INVALID_PARAMETER);
EQUAL(Result::kInvalidOperation, CUPTI_ERROR_INVALID_OPERATION);
EQUAL(Result::kOutOfMemory, CUPTI_ERROR_OUT_OF_MEMORY);
EQUAL(Result::kNotImplemented, CUPTI_ERROR_API_NOT_IMPLEMENTED);
EQUAL(Result::kMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
EQUAL(Result::kNotReady, CUPTI_ERROR_NOT_READY);
EQUAL(Result::kNotCompatible, CUPTI_ERROR_NOT_COMPATIBLE);
EQUAL(Result::kNotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
EQUAL(Result::kInvalidKind, CUPTI_ERROR_INVALID_KIND);
EQUAL(Result::kNotSupported, CUPTI_ERROR_NOT_SUPPORTED);
EQUAL(Result::kVirtualizedDevice, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED);
EQUAL(Result::kInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
EQUAL(Result::kMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
EQUAL(Result::kVirtualizedDevicePrivileges, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
EQUAL(Result::kUnknown, CUPTI_ERROR_UNKNOWN);
EQUAL(kKindMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
EQUAL(kKindMemset, CUPTI_ACTIVITY_KIND_MEMSET);
EQUAL(kKindKernel, CUPTI_ACTIVITY_KIND_KERNEL);
EQUAL(kKindDriver, CUPTI_ACTIVITY_KIND_DRIVER);
EQUAL(kKindRuntime, CUPTI_ACTIVITY_KIND_RUNTIME);
EQUAL(kKindDevice, CUPTI_ACTIVITY_KIND_DEVICE);
EQUAL(kKindContext, CUPTI_ACTIVITY_KIND_CONTEXT);
EQUAL(kKindConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
EQUAL(kKindOverhead, CUPTI_ACTIVITY_KIND_OVERHEAD);
EQUAL(kKindMemcpyPeer, CUPTI_ACTIVITY_KIND_MEMCPY2);
EQUAL(kKindCudaEvent, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
EQUAL(kKindStream, CUPTI_ACTIVITY_KIND_STREAM);
EQUAL(kKindSynchronization, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
EQUAL(kKindMemory2, CUPTI_ACTIVITY_KIND_MEMORY2);
EQUAL(kKindGraphTrace, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
EQUAL(kAttributeZeroedBuffers, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
EQUAL(kThreadIdDefault, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
EQUAL(kThreadIdSystem, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
EQUAL(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
EQUAL(kNotApplicable, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
EQUAL(kCopyUnknown, CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN);
EQUAL(kCopyHostToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
EQUAL(kCopyDeviceToHost, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
EQUAL(kCopyHostToArray, CUPTI_ACTIVITY_MEMCPY_KIND_HTOA);
EQUAL(kCopyArrayToHost, CUPTI_ACTIVITY_MEMCPY_KIND_ATOH);
EQUAL(kCopyArrayToArray, CUPTI_ACTIVITY_MEMCPY_KIND_ATOA);
EQUAL(kCopyArrayToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_ATOD);
EQUAL(kCopyDeviceToArray, CUPTI_ACTIVITY_MEMCPY_KIND_DTOA);
EQUAL(kCopyDeviceToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
EQUAL(kCopyHostToHost, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
EQUAL(kCopyPeerToPeer, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
EQUAL(kMemoryUnknown, CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN);
EQUAL(kMemoryPageable, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
EQUAL(kMemoryPinned, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
EQUAL(kMemoryDevice, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
EQUAL(kMemoryArray, CUPTI_ACTIVITY_MEMORY_KIND_ARRAY);
EQUAL(kMemoryManaged, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
EQUAL(kMemoryDeviceStatic, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC);
EQUAL(kMemoryManagedStatic, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC);
EQUAL(kSyncEvent, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
EQUAL(kSyncStreamWaitEvent, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
EQUAL(kSyncStream, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
EQUAL(kSyncContext, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
EQUAL(kOverheadUnknown, CUPTI_ACTIVITY_OVERHEAD_UNKNOWN);
EQUAL(kOverheadDriverCompiler, CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER);
EQUAL(kOverheadBufferFlush, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
EQUAL(kOverheadModuleLoading, CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING);
EQUAL(kOverheadFunctionLoading, CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING);
EQUAL(kOverheadCommandBufferFull, CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL);
EQUAL(kObjectProcess, CUPTI_ACTIVITY_OBJECT_PROCESS);
EQUAL(kObjectThread, CUPTI_ACTIVITY_OBJECT_THREAD);
EQUAL(kMemoryAllocation, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
EQUAL(kMemoryRelease, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
EQUAL(kDomainDriver, CUPTI_CB_DOMAIN_DRIVER_API);
EQUAL(kDomainRuntime, CUPTI_CB_DOMAIN_RUNTIME_API);
EQUAL(kDomainResource, CUPTI_CB_DOMAIN_RESOURCE);
EQUAL(kDomainState, CUPTI_CB_DOMAIN_STATE);
EQUAL(kResourceGraphNodeCreated, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
EQUAL(kResourceGraphNodeCloned, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
EQUAL(kResourceContextDestroyStarting, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
EQUAL(kStateFatalError, CUPTI_CBID_STATE_FATAL_ERROR);
EQUAL(kRuntimeDeviceReset, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020);
EQUAL(kDriverPrimaryContextReset, CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset);
EQUAL(kDriverPrimaryContextResetV2, CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2);
EQUAL(kSiteEnter, CUPTI_API_ENTER);
EQUAL(kSubscriberNameBytes, CUPTI_SUBSCRIBER_NAME_MAX_LEN);
EQUAL(kHolderBytes, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);

#undef SAME
#undef PREFIX
#undef EQUAL

/// Our signatures are those of the library: same parameters, same widths.
template <class Mine, class Theirs>
struct SameCall : std::false_type {};
template <class... Mine, class... Theirs>
struct SameCall<Result(Mine...), CUptiResult(Theirs...)>
    : std::bool_constant<sizeof...(Mine) == sizeof...(Theirs) &&
                         ((sizeof(Mine) == sizeof(Theirs)) && ...)> {};
#define CALL(member, presence, function, arguments)                                      \
  static_assert(                                                                        \
      SameCall<std::remove_pointer_t<decltype(CuptiApi::member)>, decltype(function)>(), \
      #function);
BUBBLESIM_CUPTI(CALL)
#undef CALL

TEST(CuptiAbi, IsAsInTheHeaderOfNvidia) { SUCCEED() << "checked while compiling"; }

TEST(CuptiAbi, NumbersOfCallsAreThoseOfTheHeader) {
  const auto id_of = [](std::span<const TracedCall> calls, std::uint32_t id) {
    for (const TracedCall& call : calls)
      if (call.id == id) return std::string(call.name);
    return std::string("(none)");
  };
  const auto runtime = traced_runtime_calls();
  EXPECT_EQ(id_of(runtime, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000), "cudaLaunchKernel");
  EXPECT_EQ(id_of(runtime, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060),
            "cudaLaunchKernelExC");
  EXPECT_EQ(id_of(runtime, CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000), "cudaGraphLaunch");
  EXPECT_EQ(id_of(runtime, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020), "cudaMemcpyAsync");
  EXPECT_EQ(id_of(runtime, CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_ptsz_v7000),
            "cudaStreamWaitEvent");
  EXPECT_EQ(id_of(runtime, CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020), "cudaEventQuery");
  EXPECT_EQ(id_of(runtime, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020), "(none)");
  const auto driver = traced_driver_calls();
  EXPECT_EQ(id_of(driver, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx), "cuLaunchKernelEx");
  EXPECT_EQ(id_of(driver, CUPTI_DRIVER_TRACE_CBID_cuStreamQuery_ptsz), "cuStreamQuery");
  EXPECT_EQ(id_of(driver, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2), "cuMemAlloc");
  EXPECT_EQ(id_of(driver, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize_v2), "cuCtxSynchronize");
}

}  // namespace
}  // namespace bubblesim::capture::cupti
