// What a job holds of the device's memory: buffers that stand-ins stream through and copies move,
// and the rest of what its plan says.
#pragma once

#include <cstdint>
#include <memory>

#include "capture/replay/cuda/device_context.hpp"
#include "capture/replay/job_plan.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture::cuda {

/// Longer copies are several copies.
inline constexpr std::uint64_t kCopyChunk = 64ULL << 20;

class DeviceMemory {
 public:
  /// The context is current. Fault: what does not fit, with what is free.
  [[nodiscard]] static Result<std::unique_ptr<DeviceMemory>> make(DeviceContext& context,
                                                                  const JobPlan& plan);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// A power of two, at least twice the L2 cache.
  [[nodiscard]] std::uint64_t stream_bytes() const { return stream_bytes_; }
  [[nodiscard]] DevicePointer stream_buffer() const { return stream_; }
  /// Each of copy_bytes(); 0: the plan has no copies.
  [[nodiscard]] std::uint64_t copy_bytes() const { return copy_bytes_; }
  [[nodiscard]] DevicePointer copy_from() const { return copy_; }
  [[nodiscard]] DevicePointer copy_to() const { return copy_ + copy_bytes_; }
  [[nodiscard]] void* host() const { return host_; }
  /// One float a graph.
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
