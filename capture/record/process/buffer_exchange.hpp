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

/// Two sizes: a few large ones for jobs that launch from a thread or two, and many small ones for
/// CUPTIs that give every launching thread a buffer of its own. If all are out, buffers are handed
/// out whose content is discarded; never a nullptr, on which old CUPTIs crash.
struct BufferLimits {
  std::size_t large_bytes = 4U << 20U;
  std::size_t large_count = 8;
  std::size_t small_bytes = 512U << 10U;
  std::size_t small_count = 64;
  std::size_t discard_bytes = 64U << 10U;
};

/// The buffers of one size, zeroed: at no instant more than `most`.
struct BufferShelf {
  BufferShelf(std::size_t bytes, std::size_t count) : size(bytes), most(count), ready(count) {}

  /// Null: all are out, or there is no memory.
  [[nodiscard]] std::uint8_t* take() noexcept;
  [[nodiscard]] std::uint8_t* make() noexcept;
  /// Keeps a zeroed buffer for take().
  void keep(std::uint8_t* buffer) noexcept;
  void drop(std::uint8_t* buffer) noexcept;

  const std::size_t size, most;
  BoundedQueue<std::uint8_t*> ready;
  std::atomic<std::size_t> made{0};
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
  explicit BufferExchange(const BufferLimits& limits = {});
  ~BufferExchange() override;

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

  // The writer's side; one thread.
  using NextRecord = decltype(CuptiApi::get_next_record);
  /// Accepts buffers from now on. `next_record` (CUPTI's) counts the records of buffers that must
  /// be discarded; nullptr: each buffer counts as one.
  void open(NextRecord next_record) noexcept;
  /// Makes `session` available to context_ending().
  void lend(CuptiSession& session) noexcept;
  /// The session is no longer lent; returns when no callback uses it.
  void recall() noexcept;
  /// Accepts no more buffers. Memory that is not out is freed.
  void close() noexcept;
  [[nodiscard]] bool next(Done& done) noexcept { return done_.pop(done); }
  [[nodiscard]] std::size_t waiting() const { return done_.size(); }
  /// Frees a discard buffer; zeroes any other and keeps it for CUPTI. A few milliseconds.
  void recycle(std::uint8_t* buffer) noexcept;
  /// Has spare buffers ready, so that callbacks need not allocate.
  void prepare() noexcept;
  [[nodiscard]] Losses take_losses() noexcept;
  /// CUPTI's error that broke the session; empty: none.
  [[nodiscard]] std::string broken() const;
  [[nodiscard]] Wake& wake() { return wake_; }
  /// Bytes of both sizes, out or ready; discard buffers that CUPTI still has come on top.
  [[nodiscard]] std::size_t bytes() const;

  /// Called in a forked child: accepts nothing any more. Async-signal-safe.
  void abandon() noexcept;

  // CUPTI's side; any thread. Buffers are aligned to 64 bytes.
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

  const std::size_t discard_bytes_;
  BufferShelf large_, small_;
  BoundedQueue<Done> done_;  ///< takes all buffers of both sizes
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
