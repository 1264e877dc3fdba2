// The one total order of events: time, then phase, then the order of scheduling.
#pragma once

#include <compare>
#include <cstdint>

#include "sim/base/time.hpp"

namespace bubblesim::engine {

/// What runs first among events of one instant, and why.
enum class Phase : std::uint8_t {
  kCompletion,  ///< device work that ends frees what the rest of the instant may use
  kArrival,     ///< requests are there before anyone looks for work
  kHost,        ///< host threads see completions and arrivals of their instant
  kDispatch,    ///< streams hand work to the GPU after every host call of the instant
  kPolicy,      ///< a policy's timer sees the whole instant
  kObserve,     ///< samplers see what the instant left behind
};

/// Keys are equal only if they are of one event: no two events of an engine share a sequence, no
/// two domains of a conductor a number.
struct EventKey {
  SimTime time{};
  Phase phase = Phase::kCompletion;
  std::uint64_t sequence = 0;  ///< of its scheduling; between domains: the domain's number
  friend constexpr auto operator<=>(const EventKey&, const EventKey&) = default;
};

}  // namespace bubblesim::engine
