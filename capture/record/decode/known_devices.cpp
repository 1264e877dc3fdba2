#include "capture/record/decode/known_devices.hpp"

#include <algorithm>

namespace bubblesim::capture {
namespace {

traces::DeviceInfo info_of(const cupti::DeviceRecord& record) {
  return {.name = record.name != nullptr ? record.name : "",
          .sm_count = record.multiprocessors,
          .compute_major = record.compute_major,
          .compute_minor = record.compute_minor,
          .memory_bytes = record.memory_bytes};
}

}  // namespace

void KnownDevices::describe(const cupti::DeviceRecord& record) {
  const auto place = std::lower_bound(
      devices_.begin(), devices_.end(), record.id,
      [](const KnownDevice& device, std::uint32_t wanted) { return device.id < wanted; });
  if (place != devices_.end() && place->id == record.id) {
    place->info = info_of(record);
  } else {
    devices_.insert(place, {record.id, info_of(record)});
  }
}

void KnownDevices::remember(std::uint32_t context, std::uint32_t device) {
  contexts_[context] = device;
  last_context_ = context;
  last_device_ = device;
  any_context_ = true;
}

void KnownDevices::count_on(std::uint32_t device) {
  counted_ = &kernels_[device];
  counted_device_ = device;
}

std::optional<std::uint32_t> KnownDevices::device_of(std::uint32_t context) const {
  if (any_context_ && context == last_context_) return last_device_;
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return std::nullopt;
  return found->second;
}

const traces::DeviceInfo& KnownDevices::busiest() const {
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

LiveMemory::Outcome LiveMemory::allocate(std::uint64_t address, std::uint64_t bytes) {
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

LiveMemory::Outcome LiveMemory::release(std::uint64_t address) {
  const auto found = live_.find(address);
  if (found == live_.end()) return Outcome::kUnknown;
  bytes_ -= found->second;
  live_.erase(found);
  return Outcome::kDone;
}

}  // namespace bubblesim::capture
