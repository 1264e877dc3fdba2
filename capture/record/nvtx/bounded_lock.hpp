// A lock that gives up: for tables that a fork may leave locked for ever in the child.
//
// Holders do a few instructions and one allocation at most. Waiting ends after some thousand
// yields; who does not get it does without.
#pragma once

#include <sched.h>

#include <atomic>

namespace bubblesim::capture {

class BoundedLock {
 public:
  class Held {
   public:
    explicit Held(BoundedLock& lock) noexcept : lock_(lock.try_lock() ? &lock : nullptr) {}
    ~Held() {
      if (lock_ != nullptr) lock_->taken_.clear(std::memory_order_release);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    [[nodiscard]] explicit operator bool() const noexcept { return lock_ != nullptr; }

   private:
    BoundedLock* lock_;
  };

 private:
  static constexpr int kTries = 4'096;

  bool try_lock() noexcept {
    for (int i = 0; i < kTries; ++i) {
      if (!taken_.test_and_set(std::memory_order_acquire)) return true;
      ::sched_yield();
    }
    return false;
  }

  std::atomic_flag taken_;
};

}  // namespace bubblesim::capture
