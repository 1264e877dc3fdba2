// What the fake driver does, as CUPTI's activity records, and the buffers of such records, which
// the fake CUPTI requests, fills and gives back as CUPTI does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "capture/record/cupti/abi.hpp"
#include "tests/fakes/cuda/fake_cuda.hpp"

namespace fake {

class Buffers {
 public:
  void set_callbacks(bubblesim::capture::cupti::BufferRequested requested,
                     bubblesim::capture::cupti::BufferCompleted completed);

  /// Writes a record for `thread`; it is complete from `end` on.
  void write(std::uint32_t thread, std::span<const std::uint8_t> record, std::uint64_t end);
  /// Gives back the buffers whose records are all complete; `forced`: all buffers.
  void flush(bool forced);
  /// Records dropped since the last call: those that found no buffer, plus the option `drops`.
  [[nodiscard]] std::size_t take_dropped();

 private:
  struct Buffer {
    std::uint8_t* data = nullptr;
    std::size_t size = 0;
    std::size_t used = 0;
    std::uint64_t complete_at = 0;
  };
  /// Invokes the completion callback. The lock is not held: the callback may call CUPTI.
  void give_back(const std::vector<Buffer>& buffers);

  std::mutex mutex_;
  std::map<std::uint32_t, Buffer> buffers_;  ///< by thread
  std::vector<Buffer> kept_;  ///< never given back
  std::atomic<std::size_t> dropped_{0};
  std::atomic<bool> dropped_told_{false};
  std::atomic<bubblesim::capture::cupti::BufferRequested> requested_{nullptr};
  std::atomic<bubblesim::capture::cupti::BufferCompleted> completed_{nullptr};
};

/// Bytes from one record of this kind to the next, as in CUDA 13.0; 0: unknown kind.
[[nodiscard]] std::size_t stride_of(std::uint32_t kind);

/// A kind of record that no CUPTI has.
inline constexpr std::uint32_t kUnknownKind = 4711;

inline constexpr std::uint32_t kKinds = 64;
inline constexpr std::uint32_t kDevices = 8;
inline constexpr std::int32_t kStreamPriority = -5;  ///< of the stream that kernels run on
inline constexpr std::uint32_t kRuntimeCalls = 522;  ///< as in CUDA 13.0, from 1

/// Numbers of driver calls as in CUDA 13.0.
inline constexpr std::uint32_t kWaitValue32 = 659, kWriteValue32 = 663;

/// Which kinds are on, and the records that follow from it.
class Activity {
 public:
  explicit Activity(Buffers& buffers) : buffers_(buffers) {}

  /// Enabling a kind of calls again switches on all of its calls.
  void enable(std::uint32_t kind, bool on);
  /// Without an effect unless the kind is on. False: no call has this number.
  bool enable_runtime_call(std::uint32_t id, bool on);
  /// Records that CUPTI writes for devices, contexts and streams that are there already, into the
  /// buffer of the thread that asks for them.
  void dump(std::uint32_t kind);
  void take(const Happening& happening);
  [[nodiscard]] std::uint64_t kernels() const { return kernels_.load(); }

 private:
  [[nodiscard]] bool on(std::uint32_t kind) const { return enabled_[kind % kKinds].load(); }
  template <class Record>
  void write(std::uint32_t thread, const Record& record, std::uint64_t end);
  void call(const Happening& happening, std::uint32_t id,
            std::uint32_t kind = bubblesim::capture::cupti::kKindRuntime);
  void kernel(const Happening& happening);
  void copy(const Happening& happening);
  void memset(const Happening& happening);
  void event(const Happening& happening);
  void wait(const Happening& happening, std::uint32_t type);
  void memory(const Happening& happening);

  Buffers& buffers_;
  std::atomic<bool> enabled_[kKinds] = {};
  std::atomic<bool> left_out_[kRuntimeCalls] = {};
  std::atomic<std::uint64_t> kernels_{0};
};

}  // namespace fake
