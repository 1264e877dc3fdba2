// The ring into which executions write when they started and ended: a few slots for each operation
// in pinned host memory, which the host polls, and the operations' states in device memory.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "capture/replay/cuda/driver.hpp"
#include "capture/replay/cuda/stand_in_arguments.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture::cuda {

/// Executions of one operation whose records the host has yet to read; a power of two.
inline constexpr std::uint32_t kSlots = 16;

/// A kernel's duration in a trace, measured by CUPTI, exceeds that in a record, from the first
/// block's start to the last block's end, by this much. Measured on an H200: 1.09 to 1.28 us
/// (middle eight tenths of 13,040 kernels), whatever the kernel's size (tests/validation/h200). All
/// of it is taken to come after the last block; how much comes before the first was not measured.
inline constexpr Duration kBesideBlocks = std::chrono::nanoseconds(1190);

class RecordRing {
 public:
  /// All slots empty. The context is current.
  [[nodiscard]] static Result<std::unique_ptr<RecordRing>> make(const Driver& driver,
                                                                std::uint32_t operations) {
    std::unique_ptr<RecordRing> ring(new RecordRing(driver));
    const std::size_t bytes = std::size_t{operations} * kSlots * sizeof(RecordSlot);
    BUBBLESIM_ASSIGN_OR_RETURN(ring->host_, make_shared_memory(driver, bytes, ring->slots_));
    const std::size_t states = std::size_t{operations} * sizeof(OperationState);
    BUBBLESIM_CUDA(driver, allocate, &ring->states_, states);
    BUBBLESIM_CUDA(driver, set_bytes, ring->states_, 0, states, nullptr);
    Status status = Status::kNotReady;
    while (status == Status::kNotReady) status = driver.stream_query(nullptr);
    BUBBLESIM_RETURN_IF_ERROR(checked(driver, status, "stream_query"));
    return ring;
  }
  ~RecordRing() {
    if (states_ != 0) (void)driver_.release(states_);
  }
  RecordRing(const RecordRing&) = delete;
  RecordRing& operator=(const RecordRing&) = delete;

  /// Addresses for the device.
  [[nodiscard]] std::uint64_t slots(std::uint32_t op) const {
    return slots_ + std::uint64_t{op} * kSlots * sizeof(RecordSlot);
  }
  [[nodiscard]] std::uint64_t state(std::uint32_t op) const {
    return states_ + std::uint64_t{op} * sizeof(OperationState);
  }

  /// Whether execution `n` (from 1 on) has started or ended; before that its times are invalid. The
  /// device may write the end first: an execution has ended when both times are written.
  [[nodiscard]] bool started(std::uint32_t op, std::uint64_t n) const {
    return std::atomic_ref(slot(op, n).started).load(std::memory_order_acquire) == n;
  }
  [[nodiscard]] bool ended(std::uint32_t op, std::uint64_t n) const {
    return started(op, n) &&
           std::atomic_ref(slot(op, n).ended).load(std::memory_order_acquire) == n;
  }
  [[nodiscard]] std::uint64_t start_ns(std::uint32_t op, std::uint64_t n) const {
    return std::atomic_ref(slot(op, n).start_ns).load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t end_ns(std::uint32_t op, std::uint64_t n) const {
    return std::atomic_ref(slot(op, n).end_ns).load(std::memory_order_relaxed);
  }

 private:
  explicit RecordRing(const Driver& driver) : driver_(driver) {}
  [[nodiscard]] RecordSlot& slot(std::uint32_t op, std::uint64_t n) const {
    return static_cast<RecordSlot*>(host_.get())[std::uint64_t{op} * kSlots +
                                                 ((n - 1) & (kSlots - 1))];
  }

  const Driver& driver_;
  OwnHostMemory host_;  ///< RecordSlots
  DevicePointer slots_ = 0;
  DevicePointer states_ = 0;
};

}  // namespace bubblesim::capture::cuda
