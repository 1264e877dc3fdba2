#include "sim/engine/thread_pool.hpp"

#include <algorithm>
#include <utility>

namespace bubblesim::engine {
namespace {

// About 20 us, longer than the gap between two windows mostly is.
constexpr int kSpins = 2000;

// Until `value` is no longer `old`: spins, then sleeps.
template <class T>
void await_change(const std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    if (i % 16 == 15) std::this_thread::yield();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(std::size_t threads)
    : size_(std::max<std::size_t>(1, threads)), faults_(size_) {}

ThreadPool::~ThreadPool() {
  leave_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& other : others_) other.join();
}

void ThreadPool::start() {
  for (std::size_t i = 1; i < size_; ++i) others_.emplace_back([this, i] { work(i); });
}

void ThreadPool::run(std::size_t count, const std::function<void(std::size_t)>& task) {
  if (size_ == 1) {
    for (std::size_t i = 0; i < count; ++i) task(i);
    return;
  }
  task_ = &task;
  count_ = count;
  busy_.store(size_ - 1, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  if (others_.empty()) start();
  round_.notify_all();
  run_range(0);
  for (std::size_t left = busy_.load(std::memory_order_acquire); left > 0;
       left = busy_.load(std::memory_order_acquire)) {
    await_change(busy_, left);
  }
  for (std::exception_ptr& fault : faults_) {
    if (fault) std::rethrow_exception(std::exchange(fault, nullptr));
  }
}

void ThreadPool::work(std::size_t self) {
  for (std::uint64_t seen = 0;;) {
    await_change(round_, seen);
    if (leave_.load(std::memory_order_relaxed)) return;
    seen = round_.load(std::memory_order_relaxed);
    run_range(self);
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

void ThreadPool::run_range(std::size_t self) noexcept {
  try {
    const std::size_t end = count_ * (self + 1) / size_;
    for (std::size_t i = count_ * self / size_; i < end; ++i) (*task_)(i);
  } catch (...) {
    faults_[self] = std::current_exception();
  }
}

}  // namespace bubblesim::engine
