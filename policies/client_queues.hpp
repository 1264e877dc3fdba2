// Each client's launches that are not known to have ended, in order, counted by operations (a CUDA
// graph counts all of its own). A policy knows no more of a queue: not a launch's stream, and an
// end only when it is noticed.
//
// Used by policies that run fillers while the protected client has no outstanding launch, and that
// bound fillers' launches in flight. A queue allocates only to exceed its greatest length so far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

/// One launch's outstanding part.
struct QueuedLaunch {
  std::uint64_t launch = 0;      ///< its number in the client's launches
  std::uint32_t operations = 0;  ///< that have not ended
  policy::WorkKind kind = policy::WorkKind::kKernel;
  std::uint64_t blocks = 0;
  std::uint64_t sm_blocks = 0;
  Duration profiled{};
};

/// The outstanding launches of one client, oldest first.
class LaunchQueue {
 public:
  void push(const policy::LaunchInfo& launch) {
    if (launch.operations == 0) return;
    if (count_ == ring_.size()) grow();
    ring_[(first_ + count_++) % ring_.size()] = {launch.launch, launch.operations, launch.kind,
                                                 launch.blocks, launch.sm_blocks, launch.profiled};
    operations_ += launch.operations;
  }

  /// An operation of this launch ended; an unknown launch is ignored. True if the
  /// oldest outstanding launch has changed. O(log n): launches are numbered upwards.
  bool complete(std::uint64_t launch) {
    const std::uint64_t oldest = empty() ? 0 : front().launch;
    std::size_t begin = 0;
    std::size_t end = empty() || oldest == launch ? 0 : count_;
    while (begin < end) {
      const std::size_t middle = (begin + end) / 2;
      at(middle).launch < launch ? begin = middle + 1 : end = middle;
    }
    if (begin < count_ && at(begin).launch == launch && at(begin).operations > 0) {
      --at(begin).operations;
      --operations_;
    }
    while (count_ > 0 && front().operations == 0) {
      first_ = (first_ + 1) % ring_.size();
      --count_;
    }
    return empty() ? oldest != 0 : front().launch != oldest;
  }

  void clear() { first_ = count_ = operations_ = 0; }

  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::size_t operations() const { return operations_; }
  /// Launches with an outstanding operation, and ended ones behind an outstanding one.
  [[nodiscard]] std::size_t size() const { return count_; }
  /// Precondition: not empty.
  [[nodiscard]] const QueuedLaunch& front() const { return ring_[first_]; }
  /// The i-th oldest; its operations may have ended if it is not the oldest.
  [[nodiscard]] const QueuedLaunch& operator[](std::size_t i) const {
    return ring_[(first_ + i) % ring_.size()];
  }

 private:
  [[nodiscard]] QueuedLaunch& at(std::size_t i) { return ring_[(first_ + i) % ring_.size()]; }

  void grow() {
    std::vector<QueuedLaunch> larger(ring_.empty() ? 16 : 2 * ring_.size());
    for (std::size_t i = 0; i < count_; ++i) larger[i] = at(i);
    ring_ = std::move(larger);
    first_ = 0;
  }

  std::vector<QueuedLaunch> ring_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t operations_ = 0;
};

/// Counts how many operations each client has outstanding, and nothing else.
class OutstandingOperations {
 public:
  explicit OutstandingOperations(std::size_t clients = 0) : counts_(clients) {}

  void passed(const policy::LaunchInfo& launch) {
    counts_[launch.client.index()] += launch.operations;
  }
  /// An end that is reported after the client's death is ignored.
  void ended(ClientId client) {
    std::uint64_t& count = counts_[client.index()];
    if (count > 0) --count;
  }
  void gone(ClientId client) { counts_[client.index()] = 0; }

  [[nodiscard]] std::uint64_t count_of(ClientId client) const { return counts_[client.index()]; }
  [[nodiscard]] bool idle(ClientId client) const { return count_of(client) == 0; }

 private:
  std::vector<std::uint64_t> counts_;
};

}  // namespace bubblesim::policies
