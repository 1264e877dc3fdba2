// The open ranges of threads: a stack of pushed ranges for each thread and domain, and started
// ranges, which any thread may end. Their number is bounded; a range that does not fit is left
// out, and the rest stays in balance.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "capture/record/nvtx/nvtx_events.hpp"

namespace bubblesim::capture {

// A lock that gives up: for tables that a fork may leave locked for ever in the child.
//
// Holders do a few instructions and one allocation at most, but may be preempted meanwhile for some
// time slices of the host. Waiting ends after a tenth of a second; a thread that does not get the
// lock gives up its range. The lock then counts as abandoned: no thread waits until it is free.

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

/// Whether pushes must be tracked: while recording, and while ranges of this thread are open.
[[nodiscard]] bool tracks_ranges() noexcept;

/// The range's level, from 0; kNotTracked while nothing records and where it does not fit.
[[nodiscard]] int push_range(NvtxCall&& call);
/// The level of the range that ended; kNotTracked where none was open.
int pop_range(nvtx_abi::Domain domain) noexcept;

/// 0: not tracked.
[[nodiscard]] nvtx_abi::RangeId start_range(NvtxCall&& call);
void end_range(nvtx_abi::RangeId id) noexcept;

}  // namespace bubblesim::capture
