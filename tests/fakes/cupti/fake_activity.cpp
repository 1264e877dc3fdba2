#include "tests/fakes/cupti/fake_activity.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/fakes/cupti/fake_options.hpp"

namespace fake {
namespace {

namespace cupti = bubblesim::capture::cupti;

// Numbers of runtime calls as in CUDA 13.0.
constexpr std::uint32_t kMalloc = 20, kFree = 22, kMemcpyAsync = 41, kMemsetAsync = 51,
                        kStreamSynchronize = 131, kEventRecord = 135, kStreamWaitEvent = 147,
                        kDeviceSynchronize = 165, kLaunchKernel = 211, kGraphLaunch = 311;

/// Contexts are numbered from 1, one a device.
std::uint32_t context_of(std::uint32_t device) { return device + 1; }

std::uint32_t process() { return static_cast<std::uint32_t>(::getpid()); }

std::uint32_t this_thread() { return static_cast<std::uint32_t>(::syscall(SYS_gettid)); }

}  // namespace

std::size_t stride_of(std::uint32_t kind) {
  switch (kind) {
    case cupti::kKindConcurrentKernel: return 216;
    case cupti::kKindMemcpy: return 96;
    case cupti::kKindMemset: return 88;
    case cupti::kKindDriver:
    case cupti::kKindRuntime: return 40;
    case cupti::kKindSynchronization:
    case cupti::kKindCudaEvent:
    case cupti::kKindOverhead:
    case cupti::kKindGraphTrace: return 56;
    case cupti::kKindDevice: return 184;
    case cupti::kKindContext: return 32;
    case cupti::kKindStream: return 24;
    case cupti::kKindMemory2: return 128;
    case kUnknownKind: return 48;
    default: return 0;
  }
}

void Buffers::set_callbacks(cupti::BufferRequested requested, cupti::BufferCompleted completed) {
  requested_.store(requested);
  completed_.store(completed);
}

void Buffers::write(std::uint32_t thread, std::span<const std::uint8_t> record, std::uint64_t end) {
  std::vector<Buffer> full;
  {
    const std::lock_guard lock(mutex_);
    Buffer& buffer = buffers_[options().has("shared") ? 0 : thread];
    if (buffer.data != nullptr && buffer.used + record.size() > buffer.size) {
      full.push_back(buffer);
      buffer = {};
    }
    if (buffer.data == nullptr) {
      std::size_t most = 0;
      if (const auto requested = requested_.load()) requested(&buffer.data, &buffer.size, &most);
    }
    if (buffer.data == nullptr || buffer.used + record.size() > buffer.size) {
      dropped_.fetch_add(1);
    } else {
      std::memcpy(buffer.data + buffer.used, record.data(), record.size());
      buffer.used += record.size();
      buffer.complete_at = std::max(buffer.complete_at, end);
    }
  }
  give_back(full);
}

void Buffers::flush(bool forced) {
  std::vector<Buffer> ready;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t now = now_ns();
    for (auto& [thread, buffer] : buffers_) {
      if (buffer.data == nullptr || (!forced && buffer.complete_at > now)) continue;
      ready.push_back(buffer);
      buffer = {};
    }
    if (options().has("keep_large")) {
      const auto large = std::partition(ready.begin(), ready.end(), [](const Buffer& buffer) {
        return buffer.size <= 64U << 10U;
      });
      kept_.insert(kept_.end(), large, ready.end());
      ready.erase(large, ready.end());
    }
    while (kept_.size() < options().number("keep") && !ready.empty()) {
      kept_.push_back(ready.back());
      ready.pop_back();
    }
  }
  if (options().has("shuffle")) std::reverse(ready.begin(), ready.end());
  give_back(ready);
}

void Buffers::give_back(const std::vector<Buffer>& buffers) {
  const auto completed = completed_.load();
  for (const Buffer& buffer : buffers) {
    if (completed != nullptr) completed(nullptr, 0, buffer.data, buffer.size, buffer.used);
  }
}

std::size_t Buffers::take_dropped() {
  const std::size_t told = dropped_told_.exchange(true) ? 0 : options().number("drops");
  return told + dropped_.exchange(0);
}

/// A record of work on a device, with the fields that all kinds have.
template <class Record>
Record device_record(const Happening& happening, decltype(Record::kind) kind) {
  Record record{};
  record.kind = kind;
  record.start = happening.start;
  record.end = happening.end;
  record.device = happening.device;
  record.context = context_of(happening.device);
  record.stream = happening.stream;
  record.correlation = happening.correlation;
  return record;
}

template <class Record>
void Activity::write(std::uint32_t thread, const Record& record, std::uint64_t end) {
  std::array<std::uint8_t, 256> bytes{};
  std::memcpy(bytes.data(), &record, std::min(sizeof(record), stride_of(record.kind)));
  buffers_.write(thread, std::span(bytes).first(stride_of(record.kind)), end);
}

void Activity::enable(std::uint32_t kind, bool on) {
  enabled_[kind % kKinds].store(on);
  if (kind != cupti::kKindRuntime || !on) return;
  for (std::atomic<bool>& left_out : left_out_) left_out.store(false);
}

bool Activity::enable_runtime_call(std::uint32_t id, bool on) {
  if (id == 0 || id >= kRuntimeCalls) return false;
  left_out_[id].store(!on);
  return true;
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
      write(this_thread(), record, 0);
    } else if (kind == cupti::kKindContext) {
      cupti::ContextRecord record{};
      record.kind = kind;
      record.context = context_of(device);
      record.device = device;
      write(this_thread(), record, 0);
    } else if (kind == cupti::kKindStream) {
      cupti::StreamRecord record{};
      record.kind = kind;
      record.context = context_of(device);
      record.stream = Launch{}.stream;
      record.priority = static_cast<std::uint32_t>(kStreamPriority);
      write(this_thread(), record, 0);
    }
  }
}

void Activity::call(const Happening& happening, std::uint32_t id, std::uint32_t kind) {
  if (!on(kind) || (kind == cupti::kKindRuntime && left_out_[id].load())) return;
  cupti::ApiRecord record{};
  record.kind = kind;
  record.id = id;
  record.start = happening.call_start;
  record.end = happening.call_end;
  record.process = process();
  record.thread = happening.thread;
  record.correlation = happening.correlation;
  write(happening.thread, record, happening.call_end);
}

void Activity::kernel(const Happening& happening) {
  if (!on(cupti::kKindConcurrentKernel)) return;
  auto record = device_record<cupti::KernelRecord>(happening, cupti::kKindConcurrentKernel);
  record.registers_per_thread = 32;
  for (std::uint32_t& size : record.grid) size = 1;
  for (std::uint32_t& size : record.block) size = 1;
  record.grid[0] = 256;
  record.block[0] = 128;
  record.graph_node = happening.node;
  record.name = options().has("null_names") ? nullptr : happening.name;
  write(happening.thread, record, happening.end);
  kernels_.fetch_add(1);
  if (options().has("unknown")) write(happening.thread, cupti::Record{kUnknownKind}, happening.end);
}

void Activity::copy(const Happening& happening) {
  if (!on(cupti::kKindMemcpy)) return;
  auto record = device_record<cupti::CopyRecord>(happening, cupti::kKindMemcpy);
  record.copy_kind = cupti::kCopyHostToDevice;
  record.source_kind = cupti::kMemoryPinned;
  record.target_kind = cupti::kMemoryDevice;
  record.flags = 1;
  record.bytes = happening.bytes;
  write(happening.thread, record, happening.end);
}

void Activity::memset(const Happening& happening) {
  if (!on(cupti::kKindMemset)) return;
  auto record = device_record<cupti::MemsetRecord>(happening, cupti::kKindMemset);
  record.bytes = happening.bytes;
  record.memory_kind = cupti::kMemoryDevice;
  write(happening.thread, record, happening.end);
}

void Activity::event(const Happening& happening) {
  if (!on(cupti::kKindCudaEvent)) return;
  cupti::CudaEventRecord record{};
  record.kind = cupti::kKindCudaEvent;
  record.correlation = happening.correlation;
  record.context = context_of(happening.device);
  record.stream = happening.stream;
  record.event = happening.event;
  record.device = happening.device;
  record.device_timestamp = happening.end;
  record.event_sync = happening.event_sync;
  write(happening.thread, record, happening.end);
}

void Activity::wait(const Happening& happening, std::uint32_t type) {
  if (!on(cupti::kKindSynchronization)) return;
  cupti::SynchronizationRecord record{};
  record.kind = cupti::kKindSynchronization;
  record.type = type;
  record.start = happening.call_start;
  record.end = happening.call_end;
  record.correlation = happening.correlation;
  record.context = context_of(happening.device);
  record.stream = type == cupti::kSyncContext ? cupti::kNotApplicable : happening.stream;
  record.event = type == cupti::kSyncStreamWaitEvent ? happening.event : cupti::kNotApplicable;
  record.event_sync = happening.event_sync;
  write(happening.thread, record, happening.call_end);
}

void Activity::memory(const Happening& happening) {
  if (!on(cupti::kKindMemory2)) return;
  cupti::MemoryRecord record{};
  record.kind = cupti::kKindMemory2;
  record.operation =
      happening.what == What::kAlloc ? cupti::kMemoryAllocation : cupti::kMemoryRelease;
  record.memory_kind = cupti::kMemoryDevice;
  record.correlation = happening.correlation;
  record.address = happening.address;
  record.bytes = happening.bytes;
  record.timestamp = happening.call_end;
  record.process = process();
  record.context = context_of(0);
  write(happening.thread, record, happening.call_end);
}

void Activity::take(const Happening& happening) {
  switch (happening.what) {
    case What::kKernel: call(happening, kLaunchKernel); return kernel(happening);
    case What::kGraphLaunch: return call(happening, kGraphLaunch);
    case What::kGraphNode: return kernel(happening);
    case What::kCopy: call(happening, kMemcpyAsync); return copy(happening);
    case What::kMemset: call(happening, kMemsetAsync); return memset(happening);
    case What::kStreamSync:
      call(happening, kStreamSynchronize);
      return wait(happening, cupti::kSyncStream);
    case What::kDeviceSync:
      call(happening, kDeviceSynchronize);
      return wait(happening, cupti::kSyncContext);
    case What::kEventRecord: call(happening, kEventRecord); return event(happening);
    case What::kStreamWait:
      call(happening, kStreamWaitEvent);
      return wait(happening, cupti::kSyncStreamWaitEvent);
    case What::kAlloc: call(happening, kMalloc); return memory(happening);
    case What::kFree: call(happening, kFree); return memory(happening);
    case What::kWaitValue: return call(happening, kWaitValue32, cupti::kKindDriver);
    case What::kWriteValue: return call(happening, kWriteValue32, cupti::kKindDriver);
    case What::kContextEnds:
    case What::kNodeCreated:
    case What::kNodeCopied: return;
  }
}

}  // namespace fake
