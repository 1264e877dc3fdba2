// Gives buffers to CUPTI's callbacks, on threads of the job, and full ones back to the writer.
//
// Lives as long as the process: CUPTI may return a buffer at any time, even after a session was
// stopped, even in a forked child. Callbacks take no lock, throw nothing and only enqueue.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "capture/record/cupti/session.hpp"
#include "capture/record/host/bounded_queue.hpp"
#include "capture/record/host/host_event.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

// The buffers that CUPTI fills: bounded memory, zeroed before CUPTI sees them.
//
// Two sizes: a few large ones for jobs that launch from a thread or two, and many small ones for
// CUPTIs that give every launching thread a buffer of its own. If all are out, the pool hands out
// buffers whose content is discarded; never a nullptr, on which old CUPTIs crash.

struct PoolLimits {
  std::size_t large_bytes = 4U << 20U;
  std::size_t large_count = 8;
  std::size_t small_bytes = 512U << 10U;
  std::size_t small_count = 64;
  std::size_t discard_bytes = 64U << 10U;
};

/// No call takes a lock or throws. Memory: the limits, plus discard buffers that CUPTI still has.
class BufferPool {
 public:
  explicit BufferPool(const PoolLimits& limits = {});
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  /// Any thread. Aligned to 64 bytes.
  [[nodiscard]] std::uint8_t* take(std::size_t& size) noexcept;
  /// A buffer whose content will be discarded: for processes that no longer record.
  [[nodiscard]] std::uint8_t* take_discard(std::size_t& size) noexcept;
  /// Whether take_discard() made this buffer.
  [[nodiscard]] static bool is_discard(const std::uint8_t* buffer) noexcept;
  /// Frees a discard buffer; zeroes any other and keeps it for take(). A few milliseconds.
  void give_back(std::uint8_t* buffer) noexcept;
  /// Has `count` large buffers ready, so that callbacks need not allocate.
  void prepare(std::size_t count) noexcept;
  /// Frees the buffers that are not out.
  void trim() noexcept;

  /// Number of buffers, of both sizes, that CUPTI or a queue has now.
  [[nodiscard]] std::size_t out() const { return out_.load(std::memory_order_relaxed); }
  /// The most buffers out at once; a queue of this length takes them all.
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

// Lets one thread sleep until another, or a callback inside the job, has work for it.

/// An eventfd: a fork cannot leave it locked, and poll can wait for it together with sockets.
class Wake {
 public:
  Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;
  ~Wake();

  /// Async-signal-safe. Without a descriptor it does nothing; sleepers also wake by time.
  void notify() noexcept;
  /// Returns after notify(), also one that came before this wait, or after `longest`.
  void wait(Duration longest) noexcept;
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

class BufferExchange final : public BufferOwner {
 public:
  explicit BufferExchange(const PoolLimits& limits = {});

  struct Done {
    std::uint8_t* buffer = nullptr;
    std::size_t valid = 0;
  };
  /// Records lost on the way since the last call.
  struct Losses {
    std::uint64_t dropped = 0;    ///< records, by CUPTI
    std::uint64_t discarded = 0;  ///< records that found no buffer to keep
    std::uint64_t late = 0;       ///< buffers that came back after their session
  };

  // The writer's side; one thread. / Accepts buffers from now on. `next_record` (CUPTI's) counts
  // the records of buffers that / must be discarded; nullptr: each buffer counts as one.
  using NextRecord = decltype(CuptiApi::get_next_record);
  void open(NextRecord next_record) noexcept;
  /// Makes `session` available to context_ending().
  void lend(CuptiSession& session) noexcept;
  /// The session is no longer lent; returns when no callback uses it.
  void recall() noexcept;
  /// Accepts no more buffers. Memory that is not out is freed.
  void close() noexcept;
  [[nodiscard]] bool next(Done& done) noexcept { return done_.pop(done); }
  [[nodiscard]] std::size_t waiting() const { return done_.size(); }
  void recycle(std::uint8_t* buffer) noexcept { pool_.give_back(buffer); }
  /// Has spare buffers ready.
  void prepare() noexcept;
  [[nodiscard]] Losses take_losses() noexcept;
  /// CUPTI's error that broke the session; empty: none.
  [[nodiscard]] std::string broken() const;
  [[nodiscard]] Wake& wake() { return wake_; }
  [[nodiscard]] const BufferPool& pool() const { return pool_; }

  /// Called in a forked child: accepts nothing any more. Async-signal-safe.
  void abandon() noexcept;

  // CUPTI's side; any thread.
  std::uint8_t* buffer_wanted(std::size_t& size) noexcept override;
  void buffer_done(std::uint8_t* buffer, std::size_t valid) noexcept override;
  void records_dropped(std::uint64_t count) noexcept override;
  void session_broken(const char* what) noexcept override;
  void context_ending() noexcept override;
  void graph_node(std::uint64_t node, std::uint64_t copy_of) noexcept override {
    tell_graph_node(node, copy_of);
  }
  void stream_value(const StreamValue& value) noexcept override;

 private:
  [[nodiscard]] std::uint64_t count_records(std::uint8_t* buffer, std::size_t valid) const noexcept;

  enum class Phase : std::uint8_t { kClosed, kOpen, kAbandoned };

  BufferPool pool_;
  BoundedQueue<Done> done_;
  Wake wake_;
  std::atomic<Phase> phase_{Phase::kClosed};
  std::atomic<CuptiSession*> lent_{nullptr};
  std::atomic<std::uint32_t> users_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<NextRecord> next_record_{nullptr};
  std::atomic<std::uint64_t> discarded_{0};
  std::atomic<std::uint64_t> late_{0};
  enum class Word : std::uint8_t { kNone, kWriting, kThere };
  std::atomic<Word> word_{Word::kNone};
  char broken_[256] = {};
};

}  // namespace bubblesim::capture
