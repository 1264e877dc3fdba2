// Where the ranks of a collective meet. A collective's kernels hold their SMs from their own
// start; data moves when the last rank has started; each rank's kernel ends its own recorded
// (or modelled) span after that.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"

namespace bubblesim::network {

/// A rank's part in a collective that has started and waits for the others.
class Participant {
 public:
  virtual ~Participant() = default;
  /// The last rank has started at `now`; the participant's kernel goes on from here.
  virtual void on_all_arrived(std::uint64_t cookie, SimTime now) = 0;
};

/// Counts arrivals. A collective's next use may begin only when its last one is complete, which
/// stream order guarantees. Not thread-safe.
class Rendezvous {
 public:
  /// `participants[c]` is how many ranks take part in collective c, at least 1.
  explicit Rendezvous(const std::vector<std::uint32_t>& participants);

  /// `participant`'s kernel has started. If it is the last one, every participant is told,
  /// in order of arrival, before this returns.
  void arrive(std::uint32_t collective, Participant& participant, std::uint64_t cookie,
              SimTime now);

  /// Collectives in which some ranks wait for others.
  [[nodiscard]] std::uint64_t waiting() const;

 private:
  struct Waiter {
    Participant* participant;
    std::uint64_t cookie;
  };
  struct Meeting {
    std::uint32_t needed;
    std::vector<Waiter> waiters;
  };
  std::vector<Meeting> meetings_;
  std::vector<Waiter> released_;
};

}  // namespace bubblesim::network
