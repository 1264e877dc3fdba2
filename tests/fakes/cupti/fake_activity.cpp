#include "tests/fakes/cupti/fake_activity.hpp"

#include <unistd.h>

#include <array>
#include <cstring>

#include "tests/fakes/cupti/fake_options.hpp"

namespace fake {
namespace {

namespace cupti = bubblesim::capture::cupti;

// Numbers of runtime calls as in CUDA 13.0.
constexpr std::uint32_t kMalloc = 20, kFree = 22, kMemcpyAsync = 41, kMemsetAsync = 51,
                        kStreamSynchronize = 131, kEventRecord = 135, kStreamWaitEvent = 147,
                        kLaunchKernel = 211, kGraphLaunch = 311;

/// Contexts are numbered from 1, one a device.
std::uint32_t context_of(std::uint32_t device) { return device + 1; }

std::uint32_t process() { return static_cast<std::uint32_t>(::getpid()); }

}  // namespace

template <class Record>
void Activity::write(std::uint32_t thread, const Record& record, std::uint64_t end) {
  std::array<std::uint8_t, 256> bytes{};
  std::memcpy(bytes.data(), &record, std::min(sizeof(record), stride_of(record.kind)));
  buffers_.write(thread, std::span(bytes).first(stride_of(record.kind)), end);
}

void Activity::dump(std::uint32_t kind) {
  for (std::uint32_t device = 0; device < 2; ++device) {
    if (kind == cupti::kKindDevice) {
      cupti::DeviceRecord record{};
      record.kind = kind;
      record.id = device;
      record.name = "NVIDIA Fake 9000";
      record.multiprocessors = 132;
      record.compute_major = 9;
      record.memory_bytes = 1ULL << 37U;
      write(process(), record, 0);
    } else if (kind == cupti::kKindContext) {
      cupti::ContextRecord record{};
      record.kind = kind;
      record.context = context_of(device);
      record.device = device;
      write(process(), record, 0);
    }
  }
}

void Activity::call(const Happening& one, std::uint32_t id) {
  if (!on(cupti::kKindRuntime)) return;
  cupti::ApiRecord record{};
  record.kind = cupti::kKindRuntime;
  record.id = id;
  record.start = one.call_start;
  record.end = one.call_end;
  record.process = process();
  record.thread = one.thread;
  record.correlation = one.correlation;
  write(one.thread, record, one.call_end);
}

void Activity::kernel(const Happening& one) {
  if (!on(cupti::kKindConcurrentKernel)) return;
  cupti::KernelRecord record{};
  record.kind = cupti::kKindConcurrentKernel;
  record.registers_per_thread = 32;
  record.start = one.start;
  record.end = one.end;
  record.device = one.device;
  record.context = context_of(one.device);
  record.stream = one.stream;
  for (std::uint32_t& size : record.grid) size = 1;
  for (std::uint32_t& size : record.block) size = 1;
  record.grid[0] = 256;
  record.block[0] = 128;
  record.correlation = one.correlation;
  record.name = options().has("null_names") ? nullptr : one.name;
  write(one.thread, record, one.end);
  kernels_.fetch_add(1);
  if (options().has("unknown")) write(one.thread, cupti::Record{kUnknownKind}, one.end);
}

void Activity::copy(const Happening& one) {
  if (!on(cupti::kKindMemcpy)) return;
  cupti::CopyRecord record{};
  record.kind = cupti::kKindMemcpy;
  record.copy_kind = cupti::kCopyHostToDevice;
  record.source_kind = cupti::kMemoryPinned;
  record.target_kind = cupti::kMemoryDevice;
  record.flags = 1;
  record.bytes = one.bytes;
  record.start = one.start;
  record.end = one.end;
  record.device = one.device;
  record.context = context_of(one.device);
  record.stream = one.stream;
  record.correlation = one.correlation;
  write(one.thread, record, one.end);
}

void Activity::memset(const Happening& one) {
  if (!on(cupti::kKindMemset)) return;
  cupti::MemsetRecord record{};
  record.kind = cupti::kKindMemset;
  record.bytes = one.bytes;
  record.start = one.start;
  record.end = one.end;
  record.device = one.device;
  record.context = context_of(one.device);
  record.stream = one.stream;
  record.correlation = one.correlation;
  record.memory_kind = cupti::kMemoryDevice;
  write(one.thread, record, one.end);
}

void Activity::event(const Happening& one) {
  if (!on(cupti::kKindCudaEvent)) return;
  cupti::CudaEventRecord record{};
  record.kind = cupti::kKindCudaEvent;
  record.correlation = one.correlation;
  record.context = context_of(one.device);
  record.stream = one.stream;
  record.event = one.event;
  record.device = one.device;
  record.device_timestamp = one.end;
  record.event_sync = one.event_sync;
  write(one.thread, record, one.end);
}

void Activity::wait(const Happening& one, std::uint32_t type) {
  if (!on(cupti::kKindSynchronization)) return;
  cupti::SynchronizationRecord record{};
  record.kind = cupti::kKindSynchronization;
  record.type = type;
  record.start = one.call_start;
  record.end = one.call_end;
  record.correlation = one.correlation;
  record.context = context_of(one.device);
  record.stream = one.stream;
  record.event = type == cupti::kSyncStreamWaitEvent ? one.event : cupti::kNotApplicable;
  record.event_sync = one.event_sync;
  write(one.thread, record, one.call_end);
}

void Activity::memory(const Happening& one) {
  if (!on(cupti::kKindMemory2)) return;
  cupti::MemoryRecord record{};
  record.kind = cupti::kKindMemory2;
  record.operation =
      one.what == What::kAlloc ? cupti::kMemoryAllocation : cupti::kMemoryRelease;
  record.memory_kind = cupti::kMemoryDevice;
  record.correlation = one.correlation;
  record.address = one.address;
  record.bytes = one.bytes;
  record.timestamp = one.call_end;
  record.process = process();
  record.context = context_of(0);
  write(one.thread, record, one.call_end);
}

void Activity::take(const Happening& one) {
  switch (one.what) {
    case What::kKernel: call(one, kLaunchKernel); return kernel(one);
    case What::kGraphLaunch: return call(one, kGraphLaunch);
    case What::kGraphNode: return kernel(one);
    case What::kCopy: call(one, kMemcpyAsync); return copy(one);
    case What::kMemset: call(one, kMemsetAsync); return memset(one);
    case What::kStreamSync: call(one, kStreamSynchronize); return wait(one, cupti::kSyncStream);
    case What::kEventRecord: call(one, kEventRecord); return event(one);
    case What::kStreamWait:
      call(one, kStreamWaitEvent);
      return wait(one, cupti::kSyncStreamWaitEvent);
    case What::kAlloc: call(one, kMalloc); return memory(one);
    case What::kFree: call(one, kFree); return memory(one);
    case What::kContextEnds: return;
  }
}

}  // namespace fake
