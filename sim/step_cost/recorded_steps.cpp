#include "sim/step_cost/recorded_steps.hpp"

#include <cmath>

namespace bubblesim::step_cost {
namespace {

// Of a step: beyond what any engine computes at once.
constexpr double kMostTokens = 1e8;
constexpr double kMostKeys = 1e12;
constexpr double kRounding = 1e-9;  // relative

// Least of equal sequences, up to their rounding; most if all but one have a single token.
bool squares_can_be(const StepSums& sums) {
  const double rest = sums.sequences - 1;
  const double longest = sums.tokens - rest;
  return sums.squares * sums.sequences >= sums.tokens * sums.tokens * (1 - kRounding) &&
         sums.squares <= longest * longest + rest;
}

}  // namespace

bool can_be(const StepSums& sums) {
  const auto whole = [](double value) { return std::floor(value) == value; };
  if (sums.tokens <= 0) return sums == StepSums{};
  return whole(sums.sequences) && whole(sums.tokens) && sums.sequences >= 1 &&
         sums.sequences <= sums.tokens && sums.tokens <= sums.keys &&
         squares_can_be(sums) && sums.squares <= sums.products &&
         sums.products <= sums.tokens * sums.keys &&
         sums.tokens <= kMostTokens && sums.keys <= kMostKeys;
}

}  // namespace bubblesim::step_cost
