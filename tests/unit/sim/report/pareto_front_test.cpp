#include "sim/report/pareto_front.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace bubblesim::report {
namespace {

using Front = std::vector<std::size_t>;

// Latency (less is better) and throughput (more is better).
Front front(const std::vector<TradePoint>& points) {
  return pareto_front(points, sweep::Better::kLess, sweep::Better::kMore);
}

TEST(ParetoFront, HoldsWhatNoOtherBeatsInBoth) {
  // 10 ms at 5/s is beaten by 10 ms at 6/s; 30 ms at 8/s by 20 ms at 9/s.
  EXPECT_EQ(front({{10, 5}, {10, 6}, {20, 9}, {30, 8}, {40, 12}}), (Front{1, 2, 4}));
}

TEST(ParetoFront, EqualPointsAreOnItTogether) {
  EXPECT_EQ(front({{20, 9}, {10, 6}, {20, 9}}), (Front{1, 0, 2}));
}

TEST(ParetoFront, OfEqualsInOneFigureTheBetterInTheOtherStays) {
  EXPECT_EQ(front({{10, 6}, {12, 6}, {10, 4}}), (Front{0}));
}

TEST(ParetoFront, PointsWithoutAFigureAreNotOnItAndBeatNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(front({{nan, 99}, {1, nan}, {std::nullopt, 99}, {1, std::nullopt}, {1, infinite},
                   {10, 5}}),
            (Front{5}));
  EXPECT_EQ(front({}), Front{});
}

TEST(ParetoFront, MoreOfBothMayBeBetter) {
  // Training kept and filler throughput; in the order of x.
  EXPECT_EQ(pareto_front(std::vector<TradePoint>{{0.9, 10}, {1.0, 2}, {0.8, 9}},
                         sweep::Better::kMore, sweep::Better::kMore),
            (Front{0, 1}));
}

}  // namespace
}  // namespace bubblesim::report
