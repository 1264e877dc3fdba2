#include "capture/record/decode/live_memory.hpp"

namespace bubblesim::capture {

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
