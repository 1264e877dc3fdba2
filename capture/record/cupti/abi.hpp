// The part of CUPTI's binary interface that the recorder uses, declared here: numbers, layouts and
// signatures as NVIDIA documents them, so that it builds without CUDA.
//
// Layouts are prefixes: CUPTI appends fields and gives a record a new name, it moves none. All
// declared fields are at the same place in CUDA 11.2 to 13.0 unless a comment says otherwise; the
// distance between records comes from cuptiActivityGetNextRecord, never from sizeof. Times are
// nanoseconds of CUPTI's clock (the base of CLOCK_REALTIME); 0 means no time.
// tests/unit/capture/cupti/abi_test.cpp compares all of it with cupti.h where that is present.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bubblesim::capture::cupti {

/// CUptiResult. Any other number is possible too.
enum class Result : std::uint32_t {
  kSuccess = 0,
  kInvalidParameter = 1,
  kInvalidOperation = 7,
  kOutOfMemory = 8,
  kNotImplemented = 11,
  kMaxLimitReached = 12,  ///< of get_next_record: no more records
  kNotReady = 13,
  kNotCompatible = 14,
  kNotInitialized = 15,
  kInvalidKind = 21,
  kNotSupported = 27,
  kVirtualizedDevice = 33,
  kInsufficientPrivileges = 35,
  kMultipleSubscribers = 39,
  kVirtualizedDevicePrivileges = 40,
  kUnknown = 999,
};

// ---- Activity ---------------------------------------------------------------------------------

/// CUpti_ActivityKind: what a record is, and what can be enabled.
enum Kind : std::uint32_t {
  kKindMemcpy = 1,
  kKindMemset = 2,
  kKindKernel = 3,  ///< serialises kernels: never enabled; its records are read as kernels
  kKindDriver = 4,
  kKindRuntime = 5,
  kKindDevice = 8,
  kKindContext = 9,
  kKindConcurrentKernel = 10,
  kKindOverhead = 17,
  kKindMemcpyPeer = 22,  ///< MEMCPY2: between devices
  kKindCudaEvent = 36,
  kKindStream = 37,
  kKindSynchronization = 38,
  kKindMemory2 = 49,
  kKindGraphTrace = 51,
};

/// CUpti_ActivityAttribute.
enum Attribute : std::uint32_t {
  kAttributeZeroedBuffers = 5,  ///< value: std::uint8_t; the buffers handed out hold zeros
};

enum ThreadIdType : std::uint32_t { kThreadIdDefault = 0, kThreadIdSystem = 1 };

enum FlushFlag : std::uint32_t {
  kFlushComplete = 0,  ///< buffers whose records are all complete
  kFlushForced = 1,    ///< also incomplete records, which are not delivered again
};

enum CopyKind : std::uint8_t {
  kCopyUnknown = 0,
  kCopyHostToDevice = 1,
  kCopyDeviceToHost = 2,
  kCopyHostToArray = 3,
  kCopyArrayToHost = 4,
  kCopyArrayToArray = 5,
  kCopyArrayToDevice = 6,
  kCopyDeviceToArray = 7,
  kCopyDeviceToDevice = 8,
  kCopyHostToHost = 9,
  kCopyPeerToPeer = 10,
};

enum MemoryKind : std::uint8_t {
  kMemoryUnknown = 0,
  kMemoryPageable = 1,
  kMemoryPinned = 2,
  kMemoryDevice = 3,
  kMemoryArray = 4,
  kMemoryManaged = 5,
  kMemoryDeviceStatic = 6,
  kMemoryManagedStatic = 7,
};

enum SynchronizationType : std::uint32_t {
  kSyncEvent = 1,
  kSyncStreamWaitEvent = 2,
  kSyncStream = 3,
  kSyncContext = 4,
};

/// Other kinds are the profiler's own work.
enum OverheadKind : std::uint32_t {
  kOverheadUnknown = 0,
  kOverheadDriverCompiler = 1,
  kOverheadBufferFlush = 1U << 16U,
  kOverheadModuleLoading = 4U << 16U,
  kOverheadFunctionLoading = 5U << 16U,
  kOverheadCommandBufferFull = 6U << 16U,
};

enum ObjectKind : std::uint32_t {
  kObjectProcess = 1,
  kObjectThread = 2,
};

enum MemoryOperation : std::uint32_t { kMemoryAllocation = 1, kMemoryRelease = 2 };

/// A 32-bit id or event number that does not apply.
inline constexpr std::uint32_t kNotApplicable = 0xFFFFFFFFU;

/// What every record begins with.
struct Record {
  std::uint32_t kind;
};

/// CUpti_ActivityKernel5 and later.
struct KernelRecord {
  std::uint32_t kind;
  std::uint8_t cache_config;
  std::uint8_t shared_memory_config;
  std::uint16_t registers_per_thread;
  std::uint32_t partitioned_cache_requested;
  std::uint32_t partitioned_cache_executed;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t completed;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t static_shared_memory;
  std::uint32_t dynamic_shared_memory;
  std::uint32_t local_memory_per_thread;
  std::uint32_t local_memory_total;
  std::uint32_t correlation;
  std::int64_t grid_id;
  const char* name;  ///< mangled; CUPTI keeps it for the process's life
  void* reserved;
  std::uint64_t queued;
  std::uint64_t submitted;
  std::uint8_t launch[8];
  std::uint64_t graph_node;  ///< of the executable graph; 0: the kernel was launched by itself
};

/// CUpti_ActivityMemcpy and later.
struct CopyRecord {
  std::uint32_t kind;
  std::uint8_t copy_kind;
  std::uint8_t source_kind;  ///< MemoryKind
  std::uint8_t target_kind;
  std::uint8_t flags;  ///< 1: asynchronous
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t correlation;
};

/// CUpti_ActivityMemcpyPtoP and later (kKindMemcpyPeer).
struct PeerCopyRecord {
  std::uint32_t kind;
  std::uint8_t copy_kind;
  std::uint8_t source_kind;
  std::uint8_t target_kind;
  std::uint8_t flags;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t source_device;
  std::uint32_t source_context;
  std::uint32_t target_device;
  std::uint32_t target_context;
  std::uint32_t correlation;
};

/// CUpti_ActivityMemset and later.
struct MemsetRecord {
  std::uint32_t kind;
  std::uint32_t value;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t correlation;
  std::uint16_t flags;
  std::uint16_t memory_kind;
};

/// CUpti_ActivitySynchronization2. Before CUDA 12.8 it ends with `event` (kFirstWithEventSync).
struct SynchronizationRecord {
  std::uint32_t kind;
  std::uint32_t type;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t correlation;
  std::uint32_t context;
  std::uint32_t stream;      ///< or kNotApplicable
  std::uint32_t event;       ///< or kNotApplicable
  std::uint64_t event_sync;  ///< the recording of the event; 0 or kNotApplicable: none
  std::uint32_t return_value;
  std::uint32_t pad;
};

/// CUpti_ActivityCudaEvent2. Before CUDA 12.8 it ends with `pad` (kFirstWithEventSync).
struct CudaEventRecord {
  std::uint32_t kind;
  std::uint32_t correlation;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t event;
  std::uint32_t pad;
  std::uint32_t device;
  std::uint32_t pad2;
  void* reserved;
  std::uint64_t device_timestamp;
  std::uint64_t event_sync;
};

/// CuptiApi::version from which records of events and synchronisations have `event_sync`.
inline constexpr std::uint32_t kFirstWithEventSync = 26;

/// CUpti_ActivityAPI: kKindDriver and kKindRuntime.
struct ApiRecord {
  std::uint32_t kind;
  std::uint32_t id;  ///< cbid, of the driver or of the runtime
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t process;
  std::uint32_t thread;
  std::uint32_t correlation;
  std::uint32_t return_value;
};

/// CUpti_ActivityOverhead and later.
struct OverheadRecord {
  std::uint32_t kind;
  std::uint32_t overhead_kind;
  std::uint32_t object_kind;
  /// Process and thread of kObjectProcess and kObjectThread; other kinds have device and context
  /// here and the stream in pad.
  std::uint32_t process;
  std::uint32_t thread;
  std::uint32_t pad;
  std::uint64_t start;
  std::uint64_t end;
};

/// CUpti_ActivityMemory2 and later.
struct MemoryRecord {
  std::uint32_t kind;
  std::uint32_t operation;    ///< MemoryOperation
  std::uint32_t memory_kind;  ///< MemoryKind
  std::uint32_t correlation;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t timestamp;
  std::uint64_t program_counter;
  std::uint32_t process;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
};

/// CUpti_ActivityDevice2 and later.
struct DeviceRecord {
  std::uint32_t kind;
  std::uint32_t flags;
  std::uint64_t memory_bandwidth;  ///< kilobytes a second
  std::uint64_t memory_bytes;
  std::uint32_t constant_memory_bytes;
  std::uint32_t l2_bytes;
  std::uint32_t threads_per_warp;
  std::uint32_t core_clock_khz;
  std::uint32_t copy_engines;
  std::uint32_t multiprocessors;
  std::uint32_t limits[14];
  std::uint32_t compute_major;
  std::uint32_t compute_minor;
  std::uint32_t id;
  std::uint32_t ecc_enabled;
  std::uint8_t uuid[16];
  const char* name;
};

/// CUpti_ActivityContext and later.
struct ContextRecord {
  std::uint32_t kind;
  std::uint32_t context;
  std::uint32_t device;
  std::uint16_t api;
  std::uint16_t null_stream;
};

/// CUpti_ActivityStream.
struct StreamRecord {
  std::uint32_t kind;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t priority;  ///< signed, in fact
  std::uint32_t flag;
  std::uint32_t correlation;
};

/// CUpti_ActivityGraphTrace and later: a whole graph.
struct GraphRecord {
  std::uint32_t kind;
  std::uint32_t correlation;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t graph;
  std::uint32_t context;
  std::uint32_t stream;
};

// ---- Callbacks --------------------------------------------------------------------------------

enum Domain : std::uint32_t {
  kDomainDriver = 1,
  kDomainRuntime = 2,
  kDomainResource = 3,
  kDomainState = 6,
};

inline constexpr std::uint32_t kResourceContextDestroyStarting = 2;
inline constexpr std::uint32_t kResourceGraphNodeCreated = 13;
inline constexpr std::uint32_t kResourceGraphNodeCloned = 20;
inline constexpr std::uint32_t kGraphNodeKernel = 0;  ///< CU_GRAPH_NODE_TYPE_KERNEL
inline constexpr std::uint32_t kStateFatalError = 1;
inline constexpr std::uint32_t kRuntimeDeviceReset = 164;         ///< cudaDeviceReset
inline constexpr std::uint32_t kDriverPrimaryContextReset = 389;  ///< cuDevicePrimaryCtxReset
inline constexpr std::uint32_t kDriverPrimaryContextResetV2 = 545;

inline constexpr std::uint32_t kSiteEnter = 0;

/// CUpti_CallbackData: of kDomainDriver and kDomainRuntime.
struct CallbackData {
  std::uint32_t site;
  const char* function;
  const void* parameters;
  void* return_value;
  const char* symbol;
  void* context;
  std::uint32_t context_id;
  std::uint64_t* correlation_data;
  std::uint32_t correlation;
};

/// Calls that make a stream wait for a value in memory, or write one. The next number is the same
/// call for the thread's default stream.
enum class ValueCall : std::uint8_t { kWait, kWrite, kBatch };
struct StreamValueCall {
  std::uint32_t id;
  ValueCall does;
};
inline constexpr StreamValueCall kStreamValueCalls[] = {
    {458, ValueCall::kWait}, {460, ValueCall::kWrite}, {462, ValueCall::kBatch},
    {473, ValueCall::kWait}, {475, ValueCall::kWrite}, {659, ValueCall::kWait},
    {661, ValueCall::kWait}, {663, ValueCall::kWrite}, {665, ValueCall::kWrite},
    {667, ValueCall::kBatch}};

/// Parameters of a StreamValueCall; kBatch has BatchParameters instead.
struct StreamValueParameters {
  void* stream;
  std::uint64_t address;
  std::uint32_t value;  ///< of 64 bits, the lower half
};

/// CUstreamBatchMemOpParams.
struct BatchOperation {
  std::uint32_t operation;  ///< 1, 4: wait for a value; 2, 5: write one
  std::uint64_t address;
  std::uint32_t value;
  std::uint64_t rest[3];
};
struct BatchParameters {
  void* stream;
  std::uint32_t count;
  const BatchOperation* operations;
};

/// CUpti_ResourceData: of kDomainResource.
struct ResourceData {
  void* context;
  void* handle;
  const void* descriptor;  ///< of graphs: GraphData
};

/// CUpti_GraphData.
struct GraphData {
  void* graph;
  void* original_graph;
  void* node;
  void* original_node;  ///< of kResourceGraphNodeCloned
  std::uint32_t node_type;
};

/// CUpti_StateData: of kDomainState.
struct StateData {
  Result result;
  const char* message;
};

struct SubscriberState;
using Subscriber = SubscriberState*;

/// `data` is the domain's struct.
using Callback = void (*)(void* user, std::uint32_t domain, std::uint32_t id, const void* data);
using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* size,
                                 std::size_t* max_records);
using BufferCompleted = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer,
                                 std::size_t size, std::size_t valid);

/// CUpti_SubscriberParams.
struct SubscriberParams {
  std::size_t struct_size;
  const char* name;   ///< at most kSubscriberNameBytes
  char* holder;       ///< the tool that holds CUPTI, if one does
  std::size_t holder_size;
};
inline constexpr std::size_t kSubscriberNameBytes = 53;
inline constexpr std::size_t kHolderBytes = 64;

}  // namespace bubblesim::capture::cupti
