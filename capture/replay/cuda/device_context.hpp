// One GPU's primary context, which all jobs of a process share; the GPU's facts; the kernels.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "capture/replay/cuda/driver.hpp"
#include "capture/replay/job_plan.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture::cuda {

/// A GPU's properties by its driver.
struct DeviceFacts {
  std::string name;
  std::string uuid;  ///< "GPU-..."
  int driver_version = 0;
  std::uint32_t sm_count = 0;
  std::uint32_t clock_khz = 0;
  std::uint64_t dram_bytes_per_second = 0;  ///< of the interface; 0: the driver does not say
  std::uint64_t l2_bytes = 0;
  std::uint32_t threads_per_block = 0;
  std::uint32_t threads_per_sm = 0;
  std::uint32_t blocks_per_sm = 0;
  std::uint32_t registers_per_sm = 0;
  std::uint64_t shared_bytes_per_sm = 0;
  std::uint64_t shared_bytes_per_block = 0;
  std::uint64_t reserved_shared_bytes = 0;  ///< of each block, by the driver
  std::array<std::uint32_t, 3> most_blocks{};
  std::array<std::uint32_t, 3> most_threads{};
};

class DeviceContext {
 public:
  /// Faults: no such GPU (with their number); a call that the driver refused; no kernel image.
  [[nodiscard]] static Result<std::unique_ptr<DeviceContext>> open(const std::string& library,
                                                                   std::uint32_t index);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  [[nodiscard]] const Driver& driver() const { return driver_; }
  [[nodiscard]] const DeviceFacts& facts() const { return facts_; }
  [[nodiscard]] DeviceHandle device() const { return device_; }
  [[nodiscard]] ContextHandle primary() const { return primary_; }

  /// The kernel of this name in stand_in_kernels.cu.
  [[nodiscard]] Result<KernelHandle> kernel(const std::string& name);

 private:
  DeviceContext() = default;
  [[nodiscard]] Result<void> choose(std::uint32_t index);
  [[nodiscard]] Result<void> read_facts();
  [[nodiscard]] Result<void> load();

  Driver driver_;
  DeviceFacts facts_;
  DeviceHandle device_ = 0;
  ContextHandle primary_ = nullptr;
  LibraryHandle library_ = nullptr;
  std::map<std::string, KernelHandle> kernels_;
};

// A job's device memory: buffers for streaming stand-ins and for copies, and the rest of the memory
// that the plan asks for.

/// A longer copy is split into several.
inline constexpr std::uint64_t kCopyChunk = 64ULL << 20;

class DeviceMemory {
 public:
  /// The context is current. Fault: an allocation that does not fit, with the free memory.
  [[nodiscard]] static Result<std::unique_ptr<DeviceMemory>> make(DeviceContext& context,
                                                                  const JobPlan& plan);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// A power of two, at least twice the L2 cache.
  [[nodiscard]] std::uint64_t stream_bytes() const { return stream_bytes_; }
  [[nodiscard]] DevicePointer stream_buffer() const { return stream_; }
  /// The size of each copy buffer; 0: the plan has no copies.
  [[nodiscard]] std::uint64_t copy_bytes() const { return copy_bytes_; }
  [[nodiscard]] DevicePointer copy_from() const { return copy_; }
  [[nodiscard]] DevicePointer copy_to() const { return copy_ + copy_bytes_; }
  [[nodiscard]] void* host() const { return host_; }
  /// One float for each graph.
  [[nodiscard]] DevicePointer scales() const { return scales_; }

 private:
  explicit DeviceMemory(DeviceContext& context) : context_(context) {}
  [[nodiscard]] Result<void> take(DevicePointer& pointer, std::uint64_t bytes, const char* what);
  [[nodiscard]] Result<void> take_copy_buffers(const JobPlan& plan);

  DeviceContext& context_;
  std::uint64_t stream_bytes_ = 0;
  std::uint64_t copy_bytes_ = 0;
  std::uint64_t taken_ = 0;
  DevicePointer stream_ = 0;
  DevicePointer copy_ = 0;
  DevicePointer scales_ = 0;
  DevicePointer rest_ = 0;
  void* host_ = nullptr;
};

}  // namespace bubblesim::capture::cuda
