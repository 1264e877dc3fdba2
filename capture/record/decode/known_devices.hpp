// Devices as records describe them, and each context's device: synchronisations name only their
// context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "capture/record/cupti/abi.hpp"
#include "traces/trace.hpp"

namespace bubblesim::capture {

class KnownDevices {
 public:
  void describe(const cupti::DeviceRecord& record);
  void note_context(std::uint32_t context, std::uint32_t device) {
    if (context == last_context_ && device == last_device_ && any_context_) return;
    remember(context, device);
  }
  void count_kernel(std::uint32_t device) {
    if (device != counted_device_ || counted_ == nullptr) count_on(device);
    ++*counted_;
  }
  /// Nothing: no record named the context yet.
  [[nodiscard]] std::optional<std::uint32_t> device_of(std::uint32_t context) const;
  /// The description of the device with most kernels; of the lowest number if none ran.
  [[nodiscard]] const traces::DeviceInfo& busiest() const;

 private:
  struct KnownDevice {
    std::uint32_t id;
    traces::DeviceInfo info;
  };
  void remember(std::uint32_t context, std::uint32_t device);
  void count_on(std::uint32_t device);

  std::vector<KnownDevice> devices_;  ///< by rising id
  std::unordered_map<std::uint32_t, std::uint64_t> kernels_;
  std::unordered_map<std::uint32_t, std::uint32_t> contexts_;
  std::uint64_t* counted_ = nullptr;  ///< of counted_device_, in kernels_, whose entries stay
  std::uint32_t counted_device_ = 0;
  std::uint32_t last_context_ = 0;
  std::uint32_t last_device_ = 0;
  bool any_context_ = false;
};

// Device memory that the process holds, followed from one allocation and release to the next.
//
// Begins at zero with the recording: earlier allocations are not known, and releasing one changes
// nothing.

class LiveMemory {
 public:
  enum class Outcome : std::uint8_t {
    kDone,
    kReplaced,  ///< the address was live: its release was not recorded, and is taken as done
    kUnknown,   ///< of a release: no such allocation
    kFull,      ///< too many live allocations to follow
  };
  Outcome allocate(std::uint64_t address, std::uint64_t bytes);
  Outcome release(std::uint64_t address);
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  /// Bounds the memory that the recorder takes from the job: some 60 MB.
  static constexpr std::size_t kMaxLive = std::size_t{1} << 20U;

  std::unordered_map<std::uint64_t, std::uint64_t> live_;  ///< bytes by address
  std::uint64_t bytes_ = 0;
};

}  // namespace bubblesim::capture
