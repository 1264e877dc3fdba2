// The threads of a program that wait for one thread's hand-overs. Each step of a job with thousands
// of threads looks up the threads that may continue; checking every thread would take quadratic
// time.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace bubblesim::workload {

/// `Thread` identifies a thread; its values are ordered.
template <class Thread>
class Followers {
 public:
  /// Lets `thread` continue once `needed` steps are done.
  void add(std::uint64_t needed, Thread thread) {
    const Follower follower{needed, thread};
    waiting_.insert(
        std::upper_bound(waiting_.begin(), waiting_.end(), follower, std::greater<>{}), follower);
  }

  /// Removes and returns a thread that may continue after `done` steps: the one that needs the
  /// fewest, of equals the lowest.
  [[nodiscard]] std::optional<Thread> take(std::uint64_t done) {
    if (waiting_.empty() || waiting_.back().needed > done) return std::nullopt;
    const Thread thread = waiting_.back().thread;
    waiting_.pop_back();
    return thread;
  }

 private:
  struct Follower {
    std::uint64_t needed = 0;
    Thread thread{};
    friend auto operator<=>(const Follower&, const Follower&) = default;
  };
  std::vector<Follower> waiting_;  ///< the next one to continue comes last
};

}  // namespace bubblesim::workload
