// The buffers that CUPTI fills: bounded memory, zeroed before CUPTI sees them.
//
// Two sizes: a few large ones for jobs that launch from a thread or two, and many small ones for
// CUPTIs that give every launching thread a buffer of its own. If all are out, buffers are handed
// out whose content nobody keeps; never none, for old CUPTIs crash on that.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/record/host/bounded_queue.hpp"

namespace bubblesim::capture {

struct PoolLimits {
  std::size_t large_bytes = 4U << 20U;
  std::size_t large_count = 8;
  std::size_t small_bytes = 512U << 10U;
  std::size_t small_count = 64;
  std::size_t discard_bytes = 64U << 10U;
};

/// No call takes a lock or throws. Memory: what the limits say, plus discard buffers that CUPTI
/// has not given back.
class BufferPool {
 public:
  explicit BufferPool(const PoolLimits& limits = {});
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  /// Any thread. Aligned to 64 bytes.
  [[nodiscard]] std::uint8_t* take(std::size_t& size) noexcept;
  /// A buffer whose content nobody will read: for processes in which nothing is recorded any more.
  [[nodiscard]] std::uint8_t* take_discard(std::size_t& size) noexcept;
  /// Was it handed out to be discarded?
  [[nodiscard]] static bool is_discard(const std::uint8_t* buffer) noexcept;
  /// Frees a discard buffer; zeroes any other and keeps it for take(). A few milliseconds.
  void give_back(std::uint8_t* buffer) noexcept;
  /// Has `count` large buffers ready, so that callbacks need not allocate.
  void prepare(std::size_t count) noexcept;
  /// Frees what is not out.
  void trim() noexcept;

  /// Buffers of the two sizes that CUPTI or a queue has now.
  [[nodiscard]] std::size_t out() const { return out_.load(std::memory_order_relaxed); }
  /// How many there can be at once; a queue of this length takes them all.
  [[nodiscard]] std::size_t most_out() const { return limits_.large_count + limits_.small_count; }
  /// Bytes of both sizes, out or ready.
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Shelf {
    explicit Shelf(std::size_t count) : ready(count), most(count) {}
    BoundedQueue<std::uint8_t*> ready;
    std::size_t most;
    std::atomic<std::size_t> made{0};  // at no instant more than `most`
  };
  [[nodiscard]] std::uint8_t* make(Shelf& shelf, std::size_t size, std::uint32_t tag) noexcept;
  [[nodiscard]] std::uint8_t* take_from(Shelf& shelf, std::size_t size, std::uint32_t tag) noexcept;
  static void trim(Shelf& shelf) noexcept;

  PoolLimits limits_;
  Shelf large_;
  Shelf small_;
  std::atomic<std::size_t> out_{0};
};

}  // namespace bubblesim::capture
