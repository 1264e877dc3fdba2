// What the fake driver does, as CUPTI's activity records, and the buffers of such records, which
// the fake CUPTI requests, fills and gives back as CUPTI does.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "capture/record/cupti/abi.hpp"
#include "tests/fakes/cuda/fake_cuda.hpp"
#include "tests/fakes/cupti/fake_options.hpp"
#include "tests/fakes/cupti/record_walk.hpp"

namespace fake {

namespace cupti = bubblesim::capture::cupti;

class Buffers {
 public:
  void set_callbacks(cupti::BufferRequested requested, cupti::BufferCompleted completed) {
    requested_.store(requested);
    completed_.store(completed);
  }

  /// Writes a record for `thread`; it is complete from `end` on.
  void write(std::uint32_t thread, std::span<const std::uint8_t> record, std::uint64_t end) {
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
  /// Gives back the buffers whose records are all complete; `forced`: all buffers.
  void flush(bool forced) {
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
  /// Records dropped since the last call: those that found no buffer, plus the option `drops`.
  [[nodiscard]] std::size_t take_dropped() {
    const std::size_t told = dropped_told_.exchange(true) ? 0 : options().number("drops");
    return told + dropped_.exchange(0);
  }

 private:
  struct Buffer {
    std::uint8_t* data = nullptr;
    std::size_t size = 0;
    std::size_t used = 0;
    std::uint64_t complete_at = 0;
  };
  /// Invokes the completion callback. The lock is not held: the callback may call CUPTI.
  void give_back(const std::vector<Buffer>& buffers) {
    const auto completed = completed_.load();
    for (const Buffer& buffer : buffers) {
      if (completed != nullptr) completed(nullptr, 0, buffer.data, buffer.size, buffer.used);
    }
  }

  std::mutex mutex_;
  std::map<std::uint32_t, Buffer> buffers_;  ///< by thread
  std::vector<Buffer> kept_;  ///< never given back
  std::atomic<std::size_t> dropped_{0};
  std::atomic<bool> dropped_told_{false};
  std::atomic<cupti::BufferRequested> requested_{nullptr};
  std::atomic<cupti::BufferCompleted> completed_{nullptr};
};

inline constexpr std::uint32_t kKinds = 64;
inline constexpr std::uint32_t kDevices = 8;
inline constexpr std::int32_t kStreamPriority = -5;  ///< of the stream that kernels run on
inline constexpr std::uint32_t kRuntimeCalls = 522;  ///< as in CUDA 13.0, from 1

/// Numbers of driver calls as in CUDA 13.0.
inline constexpr std::uint32_t kWaitValue32 = 659, kWriteValue32 = 663;

// Numbers of runtime calls as in CUDA 13.0.
inline constexpr std::uint32_t kMalloc = 20, kFree = 22, kMemcpyAsync = 41, kMemsetAsync = 51,
                               kStreamSynchronize = 131, kEventRecord = 135, kStreamWaitEvent = 147,
                               kDeviceSynchronize = 165, kLaunchKernel = 211, kGraphLaunch = 311;

/// Contexts are numbered from 1, one a device.
inline std::uint32_t context_of(std::uint32_t device) { return device + 1; }

inline std::uint32_t process() { return static_cast<std::uint32_t>(::getpid()); }

inline std::uint32_t this_thread() { return static_cast<std::uint32_t>(::syscall(SYS_gettid)); }

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

/// Which kinds are on, and the records that follow from it.
class Activity {
 public:
  explicit Activity(Buffers& buffers) : buffers_(buffers) {}

  /// Enabling a kind of calls again switches on all of its calls.
  void enable(std::uint32_t kind, bool on) {
    enabled_[kind % kKinds].store(on);
    if (kind != cupti::kKindRuntime || !on) return;
    for (std::atomic<bool>& left_out : left_out_) left_out.store(false);
  }
  /// Without an effect unless the kind is on. False: no call has this number.
  bool enable_runtime_call(std::uint32_t id, bool on) {
    if (id == 0 || id >= kRuntimeCalls) return false;
    left_out_[id].store(!on);
    return true;
  }
  /// Records that CUPTI writes for devices, contexts and streams that are there already, into the
  /// buffer of the thread that asks for them.
  void dump(std::uint32_t kind) {
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
  void take(const Happening& happening) {
    switch (happening.what) {
      case What::kKernel:
        call(happening, kLaunchKernel);
        return kernel(happening);
      case What::kGraphLaunch:
        return call(happening, kGraphLaunch);
      case What::kGraphNode:
        return kernel(happening);
      case What::kCopy:
        call(happening, kMemcpyAsync);
        return copy(happening);
      case What::kMemset:
        call(happening, kMemsetAsync);
        return memset(happening);
      case What::kStreamSync:
        call(happening, kStreamSynchronize);
        return wait(happening, cupti::kSyncStream);
      case What::kDeviceSync:
        call(happening, kDeviceSynchronize);
        return wait(happening, cupti::kSyncContext);
      case What::kEventRecord:
        call(happening, kEventRecord);
        return event(happening);
      case What::kStreamWait:
        call(happening, kStreamWaitEvent);
        return wait(happening, cupti::kSyncStreamWaitEvent);
      case What::kAlloc:
        call(happening, kMalloc);
        return memory(happening);
      case What::kFree:
        call(happening, kFree);
        return memory(happening);
      case What::kWaitValue:
        return call(happening, kWaitValue32, cupti::kKindDriver);
      case What::kWriteValue:
        return call(happening, kWriteValue32, cupti::kKindDriver);
      case What::kContextEnds:
      case What::kNodeCreated:
      case What::kNodeCopied:
        return;
    }
  }
  [[nodiscard]] std::uint64_t kernels() const { return kernels_.load(); }

 private:
  [[nodiscard]] bool on(std::uint32_t kind) const { return enabled_[kind % kKinds].load(); }
  template <class Record>
  void write(std::uint32_t thread, const Record& record, std::uint64_t end) {
    std::array<std::uint8_t, 256> bytes{};
    const std::size_t stride =
        bubblesim::capture::stride_of(record.kind, bubblesim::capture::kVersion13);
    std::memcpy(bytes.data(), &record, std::min(sizeof(record), stride));
    buffers_.write(thread, std::span(bytes).first(stride), end);
  }
  void call(const Happening& happening, std::uint32_t id,
            std::uint32_t kind = cupti::kKindRuntime) {
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
  void kernel(const Happening& happening) {
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
    if (options().has("unknown"))
      write(happening.thread, cupti::Record{bubblesim::capture::kUnknownKind}, happening.end);
  }
  void copy(const Happening& happening) {
    if (!on(cupti::kKindMemcpy)) return;
    auto record = device_record<cupti::CopyRecord>(happening, cupti::kKindMemcpy);
    record.copy_kind = cupti::kCopyHostToDevice;
    record.source_kind = cupti::kMemoryPinned;
    record.target_kind = cupti::kMemoryDevice;
    record.flags = 1;
    record.bytes = happening.bytes;
    write(happening.thread, record, happening.end);
  }
  void memset(const Happening& happening) {
    if (!on(cupti::kKindMemset)) return;
    auto record = device_record<cupti::MemsetRecord>(happening, cupti::kKindMemset);
    record.bytes = happening.bytes;
    record.memory_kind = cupti::kMemoryDevice;
    write(happening.thread, record, happening.end);
  }
  void event(const Happening& happening) {
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
  void wait(const Happening& happening, std::uint32_t type) {
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
  void memory(const Happening& happening) {
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

  Buffers& buffers_;
  std::atomic<bool> enabled_[kKinds] = {};
  std::atomic<bool> left_out_[kRuntimeCalls] = {};
  std::atomic<std::uint64_t> kernels_{0};
};

}  // namespace fake
