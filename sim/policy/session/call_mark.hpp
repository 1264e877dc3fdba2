// Which call of a policy is in flight, so that a policy that loops or crashes can be named.
//
// A session marks its calls (a few stores each). A thread that watches sees the marks of all
// sessions; a handler of signals sees that of its own thread. Neither can be handed an object, so
// both are reached by functions.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "sim/base/time.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policy {

class CallMark {
 public:
  /// Borrows the policy's name.
  explicit CallMark(const std::string& policy);
  ~CallMark();
  CallMark(const CallMark&) = delete;
  CallMark& operator=(const CallMark&) = delete;

  /// A call, while it lives. `name`: the policy function's; a constant that lives for ever.
  class Call {
   public:
    Call(CallMark& mark, const char* name, Instant now) noexcept;
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    CallMark& mark_;
  };

  [[nodiscard]] const char* policy() const noexcept { return policy_; }
  /// Null: none is in flight.
  [[nodiscard]] const char* call() const noexcept { return call_.load(std::memory_order_acquire); }
  [[nodiscard]] Instant now() const noexcept {
    return Instant{now_ns_.load(std::memory_order_relaxed)};
  }
  /// Differs for each call of the mark.
  [[nodiscard]] std::uint64_t number() const noexcept {
    return number_.load(std::memory_order_relaxed);
  }
  /// The thread that calls.
  [[nodiscard]] pthread_t thread() const noexcept {
    return thread_.load(std::memory_order_relaxed);
  }

  /// The mark of the call that the calling thread is in; null: none. Async-signal-safe.
  [[nodiscard]] static const CallMark* of_this_thread() noexcept;
  /// Visits all marks; none of them ends meanwhile.
  static void each(const std::function<void(const CallMark&)>& visit);

 private:
  const char* policy_;
  std::atomic<const char*> call_{nullptr};
  std::atomic<std::int64_t> now_ns_{0};
  std::atomic<std::uint64_t> number_{0};
  std::atomic<pthread_t> thread_{};
};

/// What a thread that calls policies has at hand.
struct CallingThread {
  pthread_t self{};
  bool is_prepared = false;
  const CallMark* mark = nullptr;
};
inline thread_local constinit CallingThread calling_thread;

/// A policy that recurses without end leaves its handler of signals no stack: gives the calling
/// thread one, unless it has one.
void prepare_calling_thread();

inline CallMark::Call::Call(CallMark& mark, const char* name, Instant now) noexcept : mark_(mark) {
  constexpr auto kAny = std::memory_order_relaxed;
  CallingThread& thread = calling_thread;
  if (!thread.is_prepared) [[unlikely]] prepare_calling_thread();
  mark.now_ns_.store(to_ns(now), kAny);
  mark.thread_.store(thread.self, kAny);
  mark.number_.store(mark.number_.load(kAny) + 1, kAny);
  mark.call_.store(name, std::memory_order_release);
  thread.mark = &mark;
}

inline CallMark::Call::~Call() {
  calling_thread.mark = nullptr;
  mark_.call_.store(nullptr, std::memory_order_release);
}

inline const CallMark* CallMark::of_this_thread() noexcept { return calling_thread.mark; }

}  // namespace bubblesim::policy
