// How requests share the passes of a program that serves them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sim/base/time.hpp"

namespace bubblesim::program {

struct Batching {
  std::uint64_t requests_per_pass = 1;  ///< that one pass of the program serves, >= 1
  std::uint32_t max_batch = 1;          ///< requests that may share a pass, >= 1
  Duration max_wait{};                  ///< for a batch to fill, from its oldest arrival
  /// In [0, 1]. GPU operations of a pass for n requests take 1 + (b - 1) * batch_cost times as long
  /// as in a pass for requests_per_pass, with b = n / requests_per_pass rounded up. Number and time
  /// of the host calls stay the same.
  double batch_cost = 1;

  /// When the next batch is due: when it is full, or its oldest request has waited for max_wait.
  /// `requests` >= 1 is the number of known requests; `arrival` gives the arrival of the i-th one.
  template <class Arrival>
  [[nodiscard]] constexpr auto due(std::size_t requests, const Arrival& arrival) const {
    const auto late = arrival(std::size_t{0}) + max_wait;
    return requests < max_batch ? late : std::min(late, arrival(std::size_t{max_batch} - 1));
  }

  /// How many of `waiting` requests a batch takes.
  [[nodiscard]] constexpr std::size_t batch_size(std::size_t waiting) const {
    return std::min<std::size_t>(waiting, max_batch);
  }

  /// The factor on the durations of the GPU operations of a pass for `requests`.
  [[nodiscard]] constexpr double pass_factor(std::uint64_t requests) const {
    const std::uint64_t parts = (requests + requests_per_pass - 1) / requests_per_pass;
    return 1.0 + static_cast<double>(parts - 1) * batch_cost;
  }
};

}  // namespace bubblesim::program
