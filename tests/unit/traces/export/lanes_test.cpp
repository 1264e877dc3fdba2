#include "traces/export/chrome_trace.hpp"

#include <gtest/gtest.h>

#include "sim/base/random.hpp"

namespace bubblesim::traces {
namespace {

using Lanes = std::vector<std::uint32_t>;

//  0   10   20   30
//  [a       ]          0..20
//       [b       ]    10..30   overlaps a
//           [c   ]    20..30   may follow a
TEST(Lanes, OverlappingSpansGoToTheLowestFreeLane) {
  EXPECT_EQ(assign_lanes({{0, 20}, {10, 30}, {20, 30}}, LaneShape::kFlat), (Lanes{0, 1, 0}));
}

TEST(Lanes, SpanInsideAnotherStaysOnANestedLaneOnly) {
  const std::vector<LaneSpan> spans{{0, 20}, {5, 10}, {10, 20}};
  EXPECT_EQ(assign_lanes(spans, LaneShape::kNested), (Lanes{0, 0, 0}));
  EXPECT_EQ(assign_lanes(spans, LaneShape::kFlat), (Lanes{0, 1, 1}));
}

TEST(Lanes, OuterSpanComesFirstWhateverTheOrderOfInput) {
  EXPECT_EQ(assign_lanes({{0, 5}, {0, 20}}, LaneShape::kNested), (Lanes{0, 0}));
}

TEST(Lanes, PartialOverlapLeavesANestedLane) {
  EXPECT_EQ(assign_lanes({{0, 20}, {10, 30}}, LaneShape::kNested), (Lanes{0, 1}));
}

TEST(Lanes, SpansOfNoLengthTakeNoRoom) {
  EXPECT_EQ(assign_lanes({{5, 5}, {5, 5}, {5, 9}}, LaneShape::kNested), (Lanes{0, 0, 0}));
}

bool partly_overlap(const LaneSpan& a, const LaneSpan& b) {
  const bool disjoint = a.end_ns <= b.start_ns || b.end_ns <= a.start_ns;
  const bool a_in_b = b.start_ns <= a.start_ns && a.end_ns <= b.end_ns;
  const bool b_in_a = a.start_ns <= b.start_ns && b.end_ns <= a.end_ns;
  return !disjoint && !a_in_b && !b_in_a;
}

TEST(Lanes, RandomSpansNeverPartlyOverlapOnALane) {
  RandomStream random(3, "lanes");
  for (const LaneShape shape : {LaneShape::kFlat, LaneShape::kNested}) {
    for (int round = 0; round < 20; ++round) {
      std::vector<LaneSpan> spans;
      for (int i = 0; i < 150; ++i) {  // dense: some need more lanes than are tried for nesting
        const auto start = static_cast<std::int64_t>(random.uniform() * 200);
        spans.push_back({start, start + static_cast<std::int64_t>(random.uniform() * 60)});
      }
      const Lanes lanes = assign_lanes(spans, shape);
      for (std::size_t a = 0; a < spans.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b) {
          ASSERT_FALSE(lanes[a] == lanes[b] && partly_overlap(spans[a], spans[b]));
        }
      }
    }
  }
}

// Staircase: each span partly overlaps its neighbours, so a hundred thousand of them would take
// as many tries each if every lane were looked at.
TEST(Lanes, ManyOverlapsStayFast) {
  std::vector<LaneSpan> spans;
  for (std::int64_t i = 0; i < 100'000; ++i) spans.push_back({i, 200'000 + i});
  const Lanes lanes = assign_lanes(spans, LaneShape::kNested);
  EXPECT_EQ(lanes.back(), 99'999U);
}

}  // namespace
}  // namespace bubblesim::traces
