// A few threads that share short pieces of work many thousand times a second. Between two pieces
// the threads spin for a moment before they sleep, so that pieces of tens of microseconds pay off.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace bubblesim::engine {

class ThreadPool {
 public:
  /// The caller is one of `threads` (0 counts as 1); the others start with the first shared work.
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::size_t size() const { return size_; }

  /// Calls task(0) ... task(count - 1), each once: each thread has an unbroken range, in order.
  /// Returns when all are done; passes on the exception of the lowest range that threw.
  void run(std::size_t count, const std::function<void(std::size_t)>& task);

 private:
  void start();
  void work(std::size_t self);
  void run_range(std::size_t self) noexcept;

  std::size_t size_;
  std::vector<std::thread> others_;
  std::vector<std::exception_ptr> faults_;  ///< by thread; null: none
  const std::function<void(std::size_t)>* task_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::uint64_t> round_{0};     ///< rises with each piece of work
  std::atomic<std::size_t> busy_{0};        ///< other threads that have not finished the piece
  std::atomic<bool> leave_{false};
};

}  // namespace bubblesim::engine
