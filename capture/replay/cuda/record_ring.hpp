// The ring into which executions write when they started and ended: a few slots for each operation
// in pinned host memory, which the host polls, and the operations' states in device memory.
#pragma once

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
                                                                std::uint32_t operations);
  ~RecordRing();
  RecordRing(const RecordRing&) = delete;
  RecordRing& operator=(const RecordRing&) = delete;

  /// Addresses for the device.
  [[nodiscard]] std::uint64_t slots(std::uint32_t op) const;
  [[nodiscard]] std::uint64_t state(std::uint32_t op) const;

  /// Whether execution `n` (from 1 on) has started or ended; before that its times are invalid. The
  /// device may write the end first: an execution has ended when both times are written.
  [[nodiscard]] bool started(std::uint32_t op, std::uint64_t n) const;
  [[nodiscard]] bool ended(std::uint32_t op, std::uint64_t n) const;
  [[nodiscard]] std::uint64_t start_ns(std::uint32_t op, std::uint64_t n) const;
  [[nodiscard]] std::uint64_t end_ns(std::uint32_t op, std::uint64_t n) const;

 private:
  explicit RecordRing(const Driver& driver) : driver_(driver) {}
  [[nodiscard]] RecordSlot& slot(std::uint32_t op, std::uint64_t n) const;

  const Driver& driver_;
  RecordSlot* host_ = nullptr;
  DevicePointer slots_ = 0;
  DevicePointer states_ = 0;
};

}  // namespace bubblesim::capture::cuda
