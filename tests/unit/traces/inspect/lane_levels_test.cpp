// Levels of detail of lanes, by numbers that can be summed by hand.
#include "traces/inspect/timeline_lanes.hpp"

#include <gtest/gtest.h>

#include "tests/unit/traces/inspect/small_trace.hpp"

namespace bubblesim::traces {
namespace {

ShownSpan span(std::int64_t start, std::int64_t length, std::uint32_t name = 0,
               Paint paint = Paint::kCompute) {
  return {Duration{start}, Duration{length}, name, paint, 1, Duration{length}};
}

TEST(JoinShort, NeighboursBelowTheResolutionAreOneSpanNamedAfterTheLongest) {
  // 4 long, gap 1, 6 long, gap 19, 5 long: below 10 are the first gap and all lengths.
  const ShownSpans joined = join_short({span(0, 4, 1), span(5, 6, 2), span(30, 5, 3)},
                                       Duration{10});
  ASSERT_EQ(joined.size(), 2U);
  EXPECT_EQ(joined[0], (ShownSpan{Duration{0}, Duration{11}, 2, Paint::kCompute, 2, Duration{10}}));
  EXPECT_EQ(joined[1], span(30, 5, 3));
}

TEST(JoinShort, LongSpansStayAlone) {
  const ShownSpans spans{span(0, 4), span(5, 20), span(26, 4)};
  EXPECT_EQ(join_short(spans, Duration{10}), spans);
}

TEST(JoinShort, WhatOverlapsIsCoveredOnce) {
  // [0, 8) and [2, 6) and [6, 9): 9 long, all of it covered.
  const ShownSpans joined = join_short({span(0, 8), span(2, 4), span(6, 3)}, Duration{10});
  ASSERT_EQ(joined.size(), 1U);
  EXPECT_EQ(joined[0].count, 3U);
  EXPECT_EQ(joined[0].length, Duration{9});
  EXPECT_EQ(joined[0].covered, Duration{9});
}

Duration resolution_of(const ShownSpans& lane, std::size_t most, Duration length) {
  return resolution_for({&lane, 1}, most, length);
}

TEST(ResolutionFor, IsTheLeastPowerOfTwoThatLeavesSoManySpans) {
  // Ten spans of 100 ns, 300 ns apart from end to start: joined from 512 ns on.
  ShownSpans lane;
  for (std::int64_t i = 0; i < 10; ++i) lane.push_back(span(400 * i, 100));
  EXPECT_EQ(resolution_of(lane, 10, Duration{4000}), Duration{0});
  EXPECT_EQ(resolution_of(lane, 9, Duration{4000}), Duration{512});
  EXPECT_EQ(join_short(lane, Duration{512}).size(), 1U);
}

TEST(ResolutionFor, EndsAtTheWholeViewWhereLongSpansStay) {
  EXPECT_EQ(resolution_of({span(0, 900), span(950, 900)}, 1, Duration{900}), Duration{900});
}

TEST(PixelRuns, AColumnIsAsDarkAsItsCoveredTime) {
  // 4 columns of 100: whole, half ([100, 150)), empty, a quarter in two parts.
  const auto runs = pixel_runs({span(0, 150), span(300, 10), span(320, 15)}, Duration{400}, 4);
  const std::vector<PaintRun> expected{{0, 1, Paint::kCompute, 4},
                                       {1, 1, Paint::kCompute, 2},
                                       {3, 1, Paint::kCompute, 1}};
  EXPECT_EQ(runs, expected);
}

TEST(PixelRuns, WhatCoversLittleIsLeftToACloserLook) {
  // A gap of 1 in each column of 20 is below a sixteenth, one of 2 is not.
  EXPECT_TRUE(pixel_runs({span(5, 1), span(25, 1)}, Duration{40}, 2).empty());
  EXPECT_EQ(pixel_runs({span(5, 2)}, Duration{40}, 2),
            (std::vector<PaintRun>{{0, 1, Paint::kCompute, 1}}));
  EXPECT_EQ(pixel_runs({span(5, 1)}, Duration{40}, 2, 0.01F).size(), 1U);
}

TEST(PixelRuns, OverlapsCountOnceAndJoinedSpansWithTheirShare) {
  // Two streams at once cover half of the first column; 50 of 100 of the second is covered.
  ShownSpan joined = span(100, 100);
  joined.count = 5;
  joined.covered = Duration{50};
  const auto runs = pixel_runs({span(0, 50), span(0, 50), joined}, Duration{200}, 2);
  EXPECT_EQ(runs, (std::vector<PaintRun>{{0, 2, Paint::kCompute, 2}}));
}

TEST(LaneLevels, AreMadeAsLongAsThereAreMoreSpansThanColumns) {
  ShownSpans lane;
  for (std::int64_t i = 0; i < 5000; ++i) lane.push_back(span(10 * i, 10));
  const auto levels = lane_levels(lane, Duration{50'000});
  ASSERT_EQ(levels.size(), 2U);  // 1024 and 4096 are below 5000, 16384 is not
  EXPECT_EQ(levels[0].columns, 1024U);
  EXPECT_EQ(levels[1].columns, 4096U);
  EXPECT_EQ(levels[0].runs, (std::vector<PaintRun>{{0, 1024, Paint::kCompute, 4}}));
  lane.resize(1024);
  EXPECT_TRUE(lane_levels(lane, Duration{50'000}).empty());
}

TEST(Paints, HaveOneNameEach) {
  for (std::size_t i = 0; i < kPaintCount; ++i) {
    const auto paint = static_cast<Paint>(i);
    EXPECT_EQ(paint_named(paint_name(paint)), paint);
  }
  EXPECT_EQ(paint_named("none"), std::nullopt);
}

TEST(PlanSpans, HoldsEveryOperationAndBubbleOfTheView) {
  // Kernels [0, 600) and [950, 1000), an all-reduce [500, 900): a bubble [600, 950).
  testing::SmallTrace trace;
  trace.kernel(0, 600);
  trace.collective(CollectiveKind::kAllReduce, 500, 900, 1);
  trace.kernel(950, 1000);
  const TimelinePlan plan = plan_timeline({{trace.rank()}}, 1);
  ASSERT_EQ(plan.blocks.size(), 1U);
  const auto& lanes = plan.blocks[0].lanes;
  ASSERT_EQ(lanes.size(), 3U);  // no rank has copies
  EXPECT_EQ(lanes[0].spans.size(), 2U);
  EXPECT_EQ(lanes[0].spans[1].start, testing::us(950));
  EXPECT_EQ(lanes[1].spans[0].paint, Paint::kCollective);
  Duration bubbles{};
  for (const ShownSpan& bubble : lanes[2].spans) bubbles += bubble.length;
  EXPECT_EQ(bubbles, testing::us(350));
}

}  // namespace
}  // namespace bubblesim::traces
