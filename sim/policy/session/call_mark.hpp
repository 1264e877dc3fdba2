// Marks the policy call in flight, so that a policy that loops or crashes can be named.
//
// A session marks its calls (a few stores each). A watching thread sees the marks of all sessions;
// a signal handler sees the mark of its own thread. Neither can be given an object, so both call
// static functions.
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
  /// Refers to the policy's name.
  explicit CallMark(const std::string& policy);
  ~CallMark();
  CallMark(const CallMark&) = delete;
  CallMark& operator=(const CallMark&) = delete;

  /// A call in flight, while it lives. `name`: of the policy's function; a static constant.
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

  /// The mark of the calling thread's policy call; null: none. Async-signal-safe.
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

/// Per-thread state of a thread that calls policies.
struct CallingThread {
  pthread_t self{};
  bool is_prepared = false;
  const CallMark* mark = nullptr;
};
inline thread_local constinit CallingThread calling_thread;

/// Gives the calling thread a stack for signal handlers, unless it has one: a policy in endless
/// recursion leaves them no other.
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
