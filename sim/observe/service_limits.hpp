// What users of a language-model server wait for, limits on it, and the requests that keep them.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/time.hpp"
#include "sim/observe/latency.hpp"
#include "sim/observe/latency_histogram.hpp"

namespace bubblesim::observe {

/// Limits that a request keeps or not; nothing: no such limit.
struct ServiceLimits {
  std::optional<Duration> ttft;     ///< time to first token
  std::optional<Duration> tpot;     ///< time per output token after the first
  std::optional<Duration> latency;  ///< from arrival to last token

  friend bool operator==(const ServiceLimits&, const ServiceLimits&) = default;
};

/// A request that was served to its end.
struct ServedTokens {
  Duration ttft{};
  Duration latency{};
  std::uint64_t output_tokens = 1;

  /// Nothing of one token. Rounded down to a nanosecond.
  [[nodiscard]] std::optional<Duration> tpot() const {
    if (output_tokens < 2) return std::nullopt;
    return (latency - ttft) / static_cast<std::int64_t>(output_tokens - 1);
  }
};

/// At most as long as each limit says; a request of one token has no time per output token to keep.
[[nodiscard]] inline bool keeps(const ServedTokens& request, const ServiceLimits& limits) {
  const auto keeps_limit = [](const std::optional<Duration>& value,
                              const std::optional<Duration>& limit) {
    return !limit || !value || *value <= *limit;
  };
  return keeps_limit(request.ttft, limits.ttft) && keeps_limit(request.tpot(), limits.tpot) &&
         keeps_limit(request.latency, limits.latency);
}

/// What a language-model server did in the measured window, over all of its GPUs.
struct ServerResult {
  LatencyDistribution ttft;   ///< of requests that arrived in it; waiting ones are lower bounds
  LatencyDistribution tpot;   ///< of those that ended, of two tokens or more
  LatencyHistogram tbt;       ///< online: times between tokens that came in it
  std::uint64_t output_tokens = 0;   ///< of requests that ended in it
  std::uint64_t steps = 0;
  std::uint64_t preemptions = 0;     ///< in the whole run, as what follows
  std::uint64_t recomputed_tokens = 0;
  std::uint64_t prefix_hit_tokens = 0;
  double mean_kv_fraction = 0;       ///< of the cache's blocks, over time
  double most_kv_fraction = 0;       ///< in the whole run
  double output_tokens_per_s = 0;
  std::optional<ServiceLimits> limits;
  std::optional<std::uint64_t> within_limits;  ///< that arrived in it, ended, and kept them all
  std::optional<double> goodput_per_s;         ///< of these
};

}  // namespace bubblesim::observe
