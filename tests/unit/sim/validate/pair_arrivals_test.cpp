// When requests come, by hand.
#include "sim/validate/pair_arrivals.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace bubblesim::validate {
namespace {

TEST(PairArrivals, ArrivalsAreOneInEachPartOfTheRun) {
  // Load 0.5 of 1 ms over 10 ms: 5 requests, one in each 2 ms.
  const auto arrivals = pair_arrivals({}, Duration{1'000'000}, Duration{10'000'000});
  ASSERT_EQ(arrivals.size(), 5u);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    EXPECT_EQ((arrivals[i] - kSimStart) / Duration{2'000'000}, static_cast<std::int64_t>(i));
  }
}

// One in 2 ms of 16 ms; spans of 4 ms hold two each, which come together within them.
TEST(PairArrivals, ArrivalsOfOneSpanComeTogether) {
  const auto arrivals = pair_arrivals({.burst = Duration{4'000'000}}, Duration{1'000'000},
                                      Duration{16'000'000});
  ASSERT_EQ(arrivals.size(), 8u);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    EXPECT_EQ(arrivals[i], arrivals[i / 2 * 2]);
    EXPECT_EQ((arrivals[i] - kSimStart) / Duration{4'000'000}, static_cast<std::int64_t>(i / 2));
  }
}

}  // namespace
}  // namespace bubblesim::validate
