// Set operations on spans of time.
#include "traces/iterations/intervals.hpp"

#include <gtest/gtest.h>

#include "tests/unit/traces/inspect/small_trace.hpp"

namespace bubblesim::traces {
namespace {

using testing::at;

Interval span(std::int64_t from, std::int64_t to) { return {at(from), at(to)}; }

TEST(Intervals, UnionJoinsSpansThatTouchOrOverlapInAnyOrder) {
  EXPECT_EQ(unite({span(30, 40), span(0, 10), span(10, 20), span(5, 8)}),
            (Intervals{span(0, 20), span(30, 40)}));
}

TEST(Intervals, AnEmptySpanDividesAGap) {
  const Intervals busy = unite({span(0, 10), span(15, 15), span(20, 30)});
  EXPECT_EQ(gaps_within(busy, span(0, 30)), (Intervals{span(10, 15), span(15, 20)}));
}

TEST(Intervals, GapsAreCutToTheWindow) {
  const Intervals busy{span(0, 10), span(20, 30)};
  EXPECT_EQ(gaps_within(busy, span(5, 50)), (Intervals{span(10, 20), span(30, 50)}));
  EXPECT_EQ(gaps_within(busy, span(12, 18)), (Intervals{span(12, 18)}));
  EXPECT_TRUE(gaps_within(busy, span(2, 9)).empty());
  EXPECT_EQ(gaps_within({}, span(2, 9)), (Intervals{span(2, 9)}));
}

TEST(Intervals, SubtractLeavesWhatIsNotTaken) {
  EXPECT_EQ(subtract({span(0, 10), span(20, 30)}, {span(5, 22), span(25, 26)}),
            (Intervals{span(0, 5), span(22, 25), span(26, 30)}));
}

TEST(Intervals, IntersectKeepsWhatBothHold) {
  EXPECT_EQ(intersect({span(0, 10), span(20, 30)}, {span(5, 22), span(25, 26)}),
            (Intervals{span(5, 10), span(20, 22), span(25, 26)}));
}

TEST(Intervals, LengthOfClippedSpansCountsTheInsideOnly) {
  EXPECT_EQ(total_length(clip({span(0, 10), span(20, 30)}, span(5, 22))), testing::us(7));
}

}  // namespace
}  // namespace bubblesim::traces
