// Names that NVTX has a handle for: domains and registered strings. Handles are small numbers, so
// that a wrong one names nothing instead of being followed. Never freed; equal names are one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "capture/record/nvtx/bounded_lock.hpp"

namespace bubblesim::capture {

/// Looking up never locks. add() may throw std::bad_alloc and then has added nothing.
template <std::size_t kMost>
class NameTable {
 public:
  /// Null: the table is full.
  [[nodiscard]] void* add(std::string name) {
    const BoundedLock::Held held(lock_);
    if (!held) return nullptr;
    const auto known = indices_.find(name);
    if (known != indices_.end()) return handle_of(known->second);
    if (count_ == kMost) return nullptr;
    const auto place = indices_.emplace(std::move(name), count_).first;
    names_[count_].store(&place->first, std::memory_order_release);
    return handle_of(count_++);
  }

  /// Null for handles that are not of this table.
  [[nodiscard]] const std::string* find(const void* handle) const noexcept {
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    if (number == 0 || number > kMost) return nullptr;
    return names_[number - 1].load(std::memory_order_acquire);
  }

 private:
  static void* handle_of(std::size_t index) noexcept {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(index + 1));
  }

  BoundedLock lock_;
  std::size_t count_ = 0;
  std::unordered_map<std::string, std::size_t> indices_;  ///< its keys never move
  std::array<std::atomic<const std::string*>, kMost> names_{};
};

}  // namespace bubblesim::capture
