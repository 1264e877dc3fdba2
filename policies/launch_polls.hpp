// The wait of a launch hook: a held host thread sleeps a fixed time, looks again, and so on until
// the gate lets it pass. Used by TGS (10 ms) and by the SpecInF reconstruction (2 ms).
#pragma once

#include <optional>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

/// The held launches' sleeping threads, in the order in which they were held. Any thread of a
/// client that wakes up serves the client's oldest launch. O(1) unless a thread wakes up.
class LaunchPolls {
 public:
  explicit LaunchPolls(Duration period) : period_(period) {}

  /// A launch of the client was held at `now`.
  void hold(ClientId client, policy::Instant now) {
    waiting_.push_back({client, now + period_});
    if (!earliest_ || now + period_ < *earliest_) earliest_ = now + period_;
  }

  /// When the next thread wakes up.
  [[nodiscard]] std::optional<policy::Instant> next() const { return earliest_; }

  /// Wakes every thread that is due. `passes(launch)` returns whether the gate lets this launch
  /// pass, and accounts for the launch.
  template <class Passes>
  void wake(policy::Instant now, policy::Actions& actions, Passes passes) {
    if (!earliest_ || *earliest_ > now) return;
    std::erase_if(waiting_, [&](Waiting& thread) {
      if (thread.wakes > now) return false;
      if (actions.held(thread.client) == 0) return true;  // its process has ended
      if (passes(actions.oldest_held(thread.client))) {
        actions.release(thread.client);
        return true;
      }
      thread.wakes = now + period_;
      return false;
    });
    find_earliest();
  }

 private:
  struct Waiting {
    ClientId client;
    policy::Instant wakes;
  };

  void find_earliest() {
    earliest_.reset();
    for (const Waiting& thread : waiting_) {
      if (!earliest_ || thread.wakes < *earliest_) earliest_ = thread.wakes;
    }
  }

  Duration period_;
  std::vector<Waiting> waiting_;
  std::optional<policy::Instant> earliest_;
};

/// The first whole multiple of `period` after `now`.
[[nodiscard]] constexpr policy::Instant next_multiple(policy::Instant now, Duration period) {
  return (now / period + 1) * period;
}

/// Admission under a launch hook that hides `reserve` bytes of the GPU's memory from clients.
[[nodiscard]] inline policy::Admission admit_with_reserve(const policy::ClientInfo& filler,
                                                          Bytes used, Bytes reserve,
                                                          const policy::GpuInfo& gpu) {
  if (!filler.memory_known || gpu.memory == Bytes{}) return {};
  if (used + filler.memory + reserve <= gpu.memory) return {};
  return {false, "needs " + format_bytes(filler.memory) + " beside " + format_bytes(used) +
                     " in use and " + format_bytes(reserve) + " kept free, the GPU has " +
                     format_bytes(gpu.memory)};
}

}  // namespace bubblesim::policies
