// A lock that gives up: for tables that a fork may leave locked for ever in the child.
//
// Holders do a few instructions and one allocation at most, but may be preempted meanwhile for
// some time slices of the host. Waiting ends after a tenth of a second; who does not get it does
// without. Then the lock counts as abandoned, and nobody waits for it any more until it is free.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

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
  static constexpr int kYields = 1'000;
  static constexpr int kNaps = 1'000;
  static constexpr std::chrono::microseconds kNap{100};

  bool try_lock() noexcept {
    for (int i = 0; i < kYields + kNaps; ++i) {
      if (!taken_.test_and_set(std::memory_order_acquire)) {
        abandoned_.store(false, std::memory_order_relaxed);
        return true;
      }
      if (abandoned_.load(std::memory_order_relaxed)) return false;
      if (i < kYields) {
        ::sched_yield();
      } else {
        std::this_thread::sleep_for(kNap);
      }
    }
    abandoned_.store(true, std::memory_order_relaxed);
    return false;
  }

  std::atomic_flag taken_;
  std::atomic<bool> abandoned_{false};
};

}  // namespace bubblesim::capture
