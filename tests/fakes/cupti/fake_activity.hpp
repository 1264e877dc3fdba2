// What the fake driver does, as CUPTI's activity records.
#pragma once

#include <atomic>
#include <cstdint>

#include "tests/fakes/cuda/fake_cuda.hpp"
#include "tests/fakes/cupti/fake_buffers.hpp"

namespace fake {

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
