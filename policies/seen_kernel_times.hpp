// How long each kernel of a client takes, as a launch hook learns it from completions: the
// shortest time seen between the instant from which it could run and its noticed end.
//
// A hook sees no streams, so it cannot tell whether a kernel launched after an outstanding
// collective waited for it. Both times are kept for each kernel: since the kernel could run, and
// since the collective's end. If the second one repeats, it is the estimate, since only kernels
// that waited take the same time after every collective's end.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

/// Identifies a kernel: one function with one grid, launched by one client.
[[nodiscard]] constexpr std::uint64_t kernel_key(const policy::LaunchInfo& launch) {
  std::uint64_t key = launch.kernel * 0x9E3779B97F4A7C15ULL;
  key = (key ^ (key >> 29U) ^ launch.blocks) * 0xBF58476D1CE4E5B9ULL;
  return (key ^ (key >> 32U) ^ launch.client.value) * 0x94D049BB133111EBULL;
}

class SeenKernelTimes {
 public:
  /// The kernel ended `span` after the instant from which it could run. Returns the estimate of its
  /// duration.
  Duration observe(std::uint64_t key, Duration span) {
    Seen& seen = kernels_[key];
    if (span < seen.shortest) seen.shortest = span;
    return seen.span();
  }
  /// The kernel ended `span` after an older collective that ended while the kernel could run.
  void observe_after_collective(std::uint64_t key, Duration span) {
    Seen& seen = kernels_[key];
    ++seen.blocked;
    if (span < seen.shortest_blocked) seen.shortest_blocked = span;
    if (span > seen.longest_blocked) seen.longest_blocked = span;
  }
  /// The estimate of the kernel's duration; nothing: none of its launches has been seen to end.
  [[nodiscard]] std::optional<Duration> time_of(std::uint64_t key) const {
    const auto found = kernels_.find(key);
    if (found == kernels_.end()) return std::nullopt;
    const Duration span = found->second.span();
    if (span == Duration::max()) return std::nullopt;
    return span;
  }

 private:
  struct Seen {
    Duration shortest = Duration::max();
    Duration shortest_blocked = Duration::max();
    Duration longest_blocked{};
    std::uint32_t blocked = 0;

    /// Spans within a quarter of each other repeat: durations of one kernel differ by less.
    [[nodiscard]] Duration span() const {
      const bool repeats = blocked > 1 && longest_blocked <= shortest_blocked * 5 / 4;
      return repeats && shortest_blocked < shortest ? shortest_blocked : shortest;
    }
  };

  std::unordered_map<std::uint64_t, Seen> kernels_;  ///< looked up, never iterated
};

}  // namespace bubblesim::policies
