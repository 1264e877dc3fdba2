// Seeded random streams. A stream is named, so that a new consumer of randomness does not change
// another's numbers. The same (seed, name) gives the same numbers on every machine: Boost.Random's
// generators and distributions are specified bit by bit, unlike the standard's.
#pragma once

#include <boost/random/mersenne_twister.hpp>
#include <cstdint>
#include <string_view>

namespace bubblesim {

/// One stream of random numbers; not shared between threads.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view name);

  /// Uniform in [0, 1).
  [[nodiscard]] double uniform();
  /// Exponential with the given mean (> 0).
  [[nodiscard]] double exponential(double mean);
  /// Gamma with the given mean (> 0) and coefficient of variation (> 0).
  [[nodiscard]] double gamma(double mean, double cv);
  /// Normal with the given mean and standard deviation (>= 0).
  [[nodiscard]] double normal(double mean, double deviation);

 private:
  boost::random::mt19937_64 generator_;
};

}  // namespace bubblesim
