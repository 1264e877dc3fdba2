// The one total order of events: time, then phase, then the order of scheduling.
#pragma once

#include <compare>
#include <cstdint>

#include "sim/base/time.hpp"

namespace bubblesim::engine {

/// The order of events of one instant, and why.
enum class Phase : std::uint8_t {
  kCompletion,  ///< device work that ends frees resources for the rest of the instant
  kArrival,     ///< requests arrive before host threads and policies look for work
  kHost,        ///< host threads see completions and arrivals of their instant
  kDispatch,    ///< streams hand work to the GPU after every host call of the instant
  kPolicy,      ///< a policy's timer sees the whole instant
  kObserve,     ///< samplers see the final state of the instant
};

/// Two events never have equal keys: no two events of an engine share a sequence number, and no two
/// domains of a conductor share a domain number.
struct EventKey {
  SimTime time{};
  Phase phase = Phase::kCompletion;
  std::uint64_t sequence = 0;  ///< order of scheduling; between domains: the domain's number
  friend constexpr auto operator<=>(const EventKey&, const EventKey&) = default;
};

}  // namespace bubblesim::engine
