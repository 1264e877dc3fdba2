// The two clocks.
#include "sim/base/time.hpp"

#include <gtest/gtest.h>

#include <type_traits>

namespace bubblesim {
namespace {

static_assert(!std::is_convertible_v<TraceTime, SimTime>, "recorded and simulated time differ");
static_assert(!std::is_constructible_v<SimTime, TraceTime>);

TEST(Time, CountsWholeNanoseconds) {
  EXPECT_EQ(to_ns(kSimStart + Duration{5}), 5);
  EXPECT_EQ(to_ns(Duration{-3}), -3);
  EXPECT_EQ((kSimStart + Duration{5}) - (kSimStart + Duration{2}), Duration{3});
  EXPECT_EQ(to_seconds(Duration{1500000000}), 1.5);
}

TEST(Time, ScalingRoundsHalfAwayFromZero) {
  EXPECT_EQ(scale(Duration{10}, 0.25), Duration{3});    // 2.5
  EXPECT_EQ(scale(Duration{-10}, 0.25), Duration{-3});  // -2.5
  EXPECT_EQ(scale(Duration{10}, 0.24), Duration{2});
  EXPECT_EQ(scale(Duration{7}, 1.0), Duration{7});
}

}  // namespace
}  // namespace bubblesim
