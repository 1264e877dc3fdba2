// A queue of fixed length for any number of producers and one consumer or several, without locks.
//
// Lock-free on purpose: producers are threads of the job inside CUPTI, NVTX or NCCL. None of them
// may wait for another, and a fork must not leave a lock that is never released. Each slot carries
// a number that says whose turn it is (D. Vyukov's bounded queue): a producer claims a place with
// one exchange and publishes it with one store. Items come out in the order of the claims.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace bubblesim::capture {

template <class T>
class BoundedQueue {
  static_assert(std::is_nothrow_move_assignable_v<T>);

 public:
  /// Room for `length` items, rounded up to a power of two. Only the constructor allocates.
  explicit BoundedQueue(std::size_t length)
      : mask_(std::bit_ceil(length < 2 ? std::size_t{2} : length) - 1),
        slots_(std::make_unique<Slot[]>(mask_ + 1)) {
    for (std::size_t i = 0; i <= mask_; ++i) slots_[i].turn.store(i, std::memory_order_relaxed);
  }

  [[nodiscard]] std::size_t capacity() const { return mask_ + 1; }

  /// False, and `item` untouched: the queue is full.
  [[nodiscard]] bool push(T&& item) noexcept {
    std::size_t place = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[place & mask_];
      const auto lag = static_cast<std::ptrdiff_t>(slot.turn.load(std::memory_order_acquire)) -
                       static_cast<std::ptrdiff_t>(place);
      if (lag < 0) return false;
      if (lag > 0) {
        place = tail_.load(std::memory_order_relaxed);
      } else if (tail_.compare_exchange_weak(place, place + 1, std::memory_order_relaxed)) {
        slot.item = std::move(item);
        slot.turn.store(place + 1, std::memory_order_release);
        return true;
      }
    }
  }

  /// False: the queue is empty, or the next item is still being moved in.
  [[nodiscard]] bool pop(T& item) noexcept {
    std::size_t place = head_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[place & mask_];
      const auto lag = static_cast<std::ptrdiff_t>(slot.turn.load(std::memory_order_acquire)) -
                       static_cast<std::ptrdiff_t>(place + 1);
      if (lag < 0) return false;
      if (lag > 0) {
        place = head_.load(std::memory_order_relaxed);
      } else if (head_.compare_exchange_weak(place, place + 1, std::memory_order_relaxed)) {
        item = std::move(slot.item);
        slot.turn.store(place + mask_ + 1, std::memory_order_release);
        return true;
      }
    }
  }

  /// Items claimed and not yet popped; valid for an instant only.
  [[nodiscard]] std::size_t size() const {
    const std::size_t head = head_.load(std::memory_order_acquire);
    const std::size_t tail = tail_.load(std::memory_order_acquire);
    return tail > head ? tail - head : 0;
  }

 private:
  struct Slot {
    std::atomic<std::size_t> turn{0};
    T item{};
  };

  std::size_t mask_;
  std::unique_ptr<Slot[]> slots_;
  alignas(64) std::atomic<std::size_t> tail_{0};
  alignas(64) std::atomic<std::size_t> head_{0};
};

}  // namespace bubblesim::capture
