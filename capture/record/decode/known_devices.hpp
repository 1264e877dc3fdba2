// Devices as records describe them, and each context's device: synchronisations name only their
// context.
#pragma once

#include <algorithm>
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
  void describe(const cupti::DeviceRecord& record) {
    const auto place = std::lower_bound(
        devices_.begin(), devices_.end(), record.id,
        [](const KnownDevice& device, std::uint32_t wanted) { return device.id < wanted; });
    if (place != devices_.end() && place->id == record.id) {
      place->info = info_of(record);
    } else {
      devices_.insert(place, {record.id, info_of(record)});
    }
  }
  void note_context(std::uint32_t context, std::uint32_t device) {
    if (context == last_context_ && device == last_device_ && any_context_) return;
    remember(context, device);
  }
  void count_kernel(std::uint32_t device) {
    if (device != counted_device_ || counted_ == nullptr) count_on(device);
    ++*counted_;
  }
  /// Nothing: no record named the context yet.
  [[nodiscard]] std::optional<std::uint32_t> device_of(std::uint32_t context) const {
    if (any_context_ && context == last_context_) return last_device_;
    const auto found = contexts_.find(context);
    if (found == contexts_.end()) return std::nullopt;
    return found->second;
  }
  /// The description of the device with most kernels; of the lowest number if none ran.
  [[nodiscard]] const traces::DeviceInfo& busiest() const {
    static const traces::DeviceInfo kUnknown{};
    const KnownDevice* best = nullptr;
    std::uint64_t most = 0;
    for (const KnownDevice& device : devices_) {
      const auto found = kernels_.find(device.id);
      const std::uint64_t kernels = found == kernels_.end() ? 0 : found->second;
      if (best == nullptr || kernels > most) best = &device, most = kernels;
    }
    return best != nullptr ? best->info : kUnknown;
  }

 private:
  static traces::DeviceInfo info_of(const cupti::DeviceRecord& record) {
    return {.name = record.name != nullptr ? record.name : "",
            .sm_count = record.multiprocessors,
            .compute_major = record.compute_major,
            .compute_minor = record.compute_minor,
            .memory_bytes = record.memory_bytes};
  }
  struct KnownDevice {
    std::uint32_t id;
    traces::DeviceInfo info;
  };
  void remember(std::uint32_t context, std::uint32_t device) {
    contexts_[context] = device;
    last_context_ = context;
    last_device_ = device;
    any_context_ = true;
  }
  void count_on(std::uint32_t device) {
    counted_ = &kernels_[device];
    counted_device_ = device;
  }

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
  Outcome allocate(std::uint64_t address, std::uint64_t bytes) {
    const auto found = live_.find(address);
    if (found != live_.end()) {
      bytes_ += bytes - found->second;
      found->second = bytes;
      return Outcome::kReplaced;
    }
    if (live_.size() >= kMaxLive) return Outcome::kFull;
    live_.emplace(address, bytes);
    bytes_ += bytes;
    return Outcome::kDone;
  }
  Outcome release(std::uint64_t address) {
    const auto found = live_.find(address);
    if (found == live_.end()) return Outcome::kUnknown;
    bytes_ -= found->second;
    live_.erase(found);
    return Outcome::kDone;
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  /// Bounds the memory that the recorder takes from the job: some 60 MB.
  static constexpr std::size_t kMaxLive = std::size_t{1} << 20U;

  std::unordered_map<std::uint64_t, std::uint64_t> live_;  ///< bytes by address
  std::uint64_t bytes_ = 0;
};

}  // namespace bubblesim::capture
