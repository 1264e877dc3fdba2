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

/// Order is equality's order too: no two scheduled events share a sequence.
struct EventKey {
  SimTime time{};
  Phase phase = Phase::kCompletion;
  std::uint64_t sequence = 0;  ///< given out by the engine, one a scheduling
  friend constexpr auto operator<=>(const EventKey&, const EventKey&) = default;
};

/// A key as one number of 128 bits, for structures that compare many: time, phase, and 56 bits of
/// the sequence, which at a billion events a second last two years. In the same order as keys of
/// times from the start of the simulation on. Comparing takes no branch.
class PackedKey {
 public:
  constexpr PackedKey() = default;
  constexpr explicit PackedKey(const EventKey& key)
      : high_(static_cast<std::uint64_t>(key.time.time_since_epoch().count())),
        low_(std::uint64_t{static_cast<std::uint8_t>(key.phase)} << kSequenceBits |
             (key.sequence & kSequences)) {}

  [[nodiscard]] constexpr SimTime time() const {
    return SimTime{Duration{static_cast<std::int64_t>(high_)}};
  }
  [[nodiscard]] constexpr EventKey key() const {
    return {time(), Phase{static_cast<std::uint8_t>(low_ >> kSequenceBits)}, low_ & kSequences};
  }
  friend constexpr bool operator<(const PackedKey& a, const PackedKey& b) {
    return a.number() < b.number();
  }

 private:
  __extension__ using Number = unsigned __int128;
  static constexpr int kSequenceBits = 56;
  static constexpr std::uint64_t kSequences = (std::uint64_t{1} << kSequenceBits) - 1;

  [[nodiscard]] constexpr Number number() const { return Number{high_} << 64U | low_; }

  std::uint64_t high_ = 0;
  std::uint64_t low_ = 0;
};

}  // namespace bubblesim::engine
