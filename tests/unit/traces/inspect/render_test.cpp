// Text and JSON of small traces.
#include <gmock/gmock.h>

#include <sstream>
#include <string>
#include <vector>

#include "sim/base/json.hpp"
#include "tests/unit/traces/inspect/small_trace.hpp"
#include "traces/inspect/labels.hpp"
#include "traces/inspect/render_text.hpp"
#include "traces/inspect/sensitivities.hpp"
#include "traces/inspect/timeline_lanes.hpp"

namespace bubblesim::traces {
namespace {

using ::testing::HasSubstr, ::testing::Not;
using testing::at, testing::SmallTrace, testing::us;

/// 1 ms: kernel 0..600 us, all-reduce 500..900 us, kernel 950..1000 us.
RankTrace one_millisecond(std::uint32_t number) {
  SmallTrace trace;
  trace.rank().rank = number;
  trace.rank().world_size = 2;
  trace.rank().device.name = "Test GPU";
  trace.kernel(0, 600);
  trace.collective(CollectiveKind::kAllReduce, 500, 900, 1 << 20);
  trace.kernel(950, 1000);
  return trace.rank();
}

JobTrace two_ranks() { return {{one_millisecond(0), one_millisecond(1)}}; }

// Two ranks of 10 ms, in one of which a wait of 2 ms and a start of 0.5 ms are unexplained.
TEST(ExplanationText, SaysTheShareOfAllAndOfTheWorstRank) {
  Explanation rank;
  rank.window = std::chrono::milliseconds(10);
  rank.starts = {7, 1, 0, 2, 0};
  Explanation worst = rank;
  worst.starts[4] = 3;
  worst.waits[0] = {4, 0, 0, 1};
  worst.late_starts = std::chrono::microseconds(500);
  worst.open_waits[0] = std::chrono::microseconds(2000);
  worst.unexplained = std::chrono::microseconds(2500);
  const std::string text = explanation_text({rank, worst});
  EXPECT_THAT(text, HasSubstr("Unexplained: 12.50 % of the iterations' time, of one rank up to "
                              "25.00 %\n"));
  EXPECT_THAT(text, HasSubstr("launching call"));
  EXPECT_THAT(text, HasSubstr("500 us (2.5 %)"));
  EXPECT_THAT(text, HasSubstr("2.00 ms (10.0 %)"));
  EXPECT_THAT(text, Not(HasSubstr("recorded dependency")));
  EXPECT_EQ(explanation_json(worst)["unexplained_fraction"], 0.25);
  EXPECT_EQ(explanation_json(worst)["waits"]["stream"]["unknown"], 1);
}

TEST(Labels, DurationsHaveThreeDigitsAndTheFittingUnit) {
  EXPECT_EQ(short_duration(Duration{0}), "0 ns");
  EXPECT_EQ(short_duration(Duration{999}), "999 ns");
  EXPECT_EQ(short_duration(Duration{1'234}), "1.23 us");
  EXPECT_EQ(short_duration(Duration{99'960}), "100 us");
  EXPECT_EQ(short_duration(Duration{999'600}), "1.00 ms");
  EXPECT_EQ(short_duration(Duration{2'115'000'000}), "2115 ms");
  EXPECT_EQ(short_duration(Duration{12'340'000'000}), "12.3 s");
}

TEST(Labels, BytesArePowersOfAThousand) {
  EXPECT_EQ(short_bytes(999), "999 B");
  EXPECT_EQ(short_bytes(1'500), "1.50 kB");
  EXPECT_EQ(short_bytes(25'800'000'000), "25.8 GB");
}

TEST(Labels, ShorteningKeepsBothEndsAndWholeCharacters) {
  EXPECT_EQ(shortened("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shortened("abcdefghijk", 10), "abcde..ijk");
  EXPECT_EQ(shortened("abcd\xC3\xA9" "fghijk", 10), "abcd..ijk");
}

TEST(RenderText, SaysBubblesCausesAndCommunication) {
  const std::string text = render_text(inspect_job(two_ranks()));
  EXPECT_THAT(text, HasSubstr("2 ranks, Test GPU\n"));
  EXPECT_THAT(text, HasSubstr("Iterations: none marked: the whole recording is taken as one\n"));
  // own work 650 of 1000 us; collective alone 300 us, empty 50 us
  EXPECT_THAT(text, HasSubstr("     0  1.00 ms  none marked  95.0 %    65.0 %"));
  EXPECT_THAT(text, HasSubstr("collective wait  600 us      85.7 %     30.0 %\n"));
  EXPECT_THAT(text, HasSubstr("Communication: 40.0 % of the window, 25.0 % of it behind"));
  EXPECT_THAT(text, HasSubstr("inspect_gap_without_launch"));
}

TEST(RenderText, LinesStayWithinAHundredColumns) {
  JobTrace job = two_ranks();
  DeviceOp long_name = job.ranks[0].device_ops[0];
  long_name.name = job.ranks[0].names.intern(std::string(500, 'x'));
  job.ranks[0].device_ops.push_back(long_name);
  std::istringstream lines(render_text(inspect_job(job)));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(RenderText, AnEmptyJobAndAnEmptyRankHaveAText) {
  EXPECT_EQ(render_text(inspect_job({})), "No ranks.\n");
  JobTrace job;
  job.ranks.emplace_back();
  EXPECT_THAT(render_text(inspect_job(job)), HasSubstr("No bubbles."));
}

TEST(RenderJson, HoldsIntegersInNanosecondsAndSumsThatAgree) {
  const Json json = Json::parse(render_json(inspect_job(two_ranks())));
  EXPECT_EQ(json["format"], "bubblesim.inspect/1");
  const Json& use = json["ranks"][1]["whole"];
  EXPECT_EQ(use["length_ns"], 1'000'000);
  EXPECT_EQ(use["own_ns"], 650'000);
  EXPECT_EQ(use["bubble_ns"], 350'000);
  EXPECT_EQ(use["bubble_by_cause"]["collective_wait_ns"], 300'000);
  EXPECT_EQ(use["bubble_by_cause"]["other_ns"], 50'000);
  EXPECT_EQ(use["bubble_by_length"][2]["bubbles"], 1);
  EXPECT_EQ(json["job"]["whole"]["length_ns"], 2'000'000);
  EXPECT_EQ(json["job"]["operations"]["collectives"][0]["bytes"], 2 << 20);
  EXPECT_EQ(json["ranks"][0]["steady"]["own_ns"], 650'000);
  EXPECT_EQ(json["job"]["iterations_used"], 1);
  EXPECT_EQ(json["job"]["iteration_mean_ns"], 1'000'000);
  EXPECT_EQ(json["job"]["bubble_fraction"], 0.35);
  EXPECT_EQ(json["ranks"][0]["iterations"]["all"][0]["use"], "used");
}

TEST(RenderJson, NamesThatAreNotUtf8DoNotBreakIt) {
  JobTrace job = two_ranks();
  job.ranks[0].device_ops[0].name = job.ranks[0].names.intern("bad\xFFname");
  EXPECT_FALSE(Json::parse(render_json(inspect_job(job))).empty());
}

TEST(PixelLane, AColumnHasTheColourThatCoversMostOfIt) {
  PixelLane lane({at(0), at(100)}, 10);
  lane.add({at(0), at(20)}, Paint::kCompute);
  lane.add({at(20), at(23)}, Paint::kCopy);
  lane.add({at(23), at(30)}, Paint::kCollective);
  lane.add({at(95), at(500)}, Paint::kCompute);
  const std::vector<PaintRun> expected{{0, 2, Paint::kCompute, 4},
                                       {2, 1, Paint::kCollective, 4},
                                       {9, 1, Paint::kCompute, 2}};
  EXPECT_EQ(lane.runs(), expected);
}

TEST(PixelLane, SlicesFarBelowAPixelStayVisible) {
  PixelLane lane({at(0), at(100'000)}, 10);
  lane.add({at(50'001), at(50'002)}, Paint::kCopy);
  const std::vector<PaintRun> expected{{5, 1, Paint::kCopy, 1}};
  EXPECT_EQ(lane.runs(), expected);
}

TEST(AxisTicks, AreRoundAndInOneUnit) {
  const auto ticks = axis_ticks(us(1000));
  ASSERT_EQ(ticks.size(), 11u);
  EXPECT_EQ(ticks[1].label, "0.1 ms");
  EXPECT_EQ(axis_ticks(Duration{24}).back().label, "24 ns");
  EXPECT_EQ(axis_ticks(Duration{1}).size(), 2u);
}

TEST(RenderJson, TheSameTraceGivesTheSameBytes) {
  EXPECT_EQ(render_json(inspect_job(two_ranks())), render_json(inspect_job(two_ranks())));
}

// Which cause of bubbles the sensitivities of a job confirm, in words.

Sensitivities with(double kernels, double link, double host) {
  Sensitivities job;
  job.kernels = kernels;
  job.link = link;
  job.host = host;
  return job;
}

// 0.918 of the iteration halves: 45.9 % of it are saved.
TEST(ConfirmedCause, collectives_that_a_faster_link_does_not_shorten_wait_for_late_hosts) {
  EXPECT_EQ(confirmed_cause(BubbleCause::kCollectiveWait, with(0.02, 0, 0.918)),
            "late hosts: hosts twice as fast save 45.9 % of the bubbles, links 0.0 %");
}

TEST(ConfirmedCause, collectives_that_a_faster_link_shortens_are_slow_links) {
  EXPECT_EQ(confirmed_cause(BubbleCause::kCollectiveWait, with(0.2, 0.6, 0.1)),
            "a slow link: links twice as fast save 30.0 % of the bubbles");
}

TEST(ConfirmedCause, collectives_of_one_rank_alone_may_wait_for_ranks_that_were_not_recorded) {
  Sensitivities job = with(0.2, 0.6, 0.1);
  job.alone = true;
  EXPECT_EQ(confirmed_cause(BubbleCause::kCollectiveWait, job),
            "slow links or late ranks: the other ranks were not recorded: links twice as fast save "
            "30.0 % of the bubbles");
}

TEST(ConfirmedCause, a_bubble_that_nothing_shortens_is_not_blamed_on_anything) {
  EXPECT_EQ(bottleneck(with(0.05, 0.09, 0.0)), Bottleneck::kNothing);
  EXPECT_EQ(confirmed_cause(BubbleCause::kTurnaround, with(0.05, 0.09, 0.0)),
            "several things that take as long: none is faster by itself");
}

// Half of the iteration is bubbles, of which 0.4 of the iteration stays.
TEST(ConfirmedCause, bubbles_that_stay_whatever_is_faster_are_latencies) {
  Sensitivities job = with(0.5, 0, 0.1);
  job.fixed = 0.4;
  EXPECT_EQ(confirmed_cause(BubbleCause::kSynchronisation, of_bubbles(job, 0.5)),
            "fixed latencies: 80.0 % of the bubbles stay, whatever is faster");
}

// Two equal ranks: kernels of 1 ms, then an all-reduce of 1 ms. Kernels twice as fast halve half of
// the iteration (0.5), which is their own half: of the bubbles nothing. The link halves all of
// them.
TEST(ConfirmedCause, kernels_that_shorten_their_own_time_alone_are_no_cause) {
  const Sensitivities bubbles = of_bubbles(with(0.5, 0.5, 0), 0.5);
  EXPECT_EQ(bubbles.kernels, 0);
  EXPECT_EQ(confirmed_cause(BubbleCause::kCollectiveWait, bubbles),
            "a slow link: links twice as fast save 50.0 % of the bubbles");
}

// Of four ranks one runs kernels for 4 ms, the others for 1, then an all-reduce of 1 ms: own work
// is 1.75 of 5, kernels halve 4 of 5. Bubbles are 3.25, and half of 2.25 of them go.
TEST(ConfirmedCause, a_straggler_is_named) {
  Sensitivities job = with(0.8, 0.2, 0);
  job.straggler = Straggler{2, std::chrono::milliseconds(3)};
  EXPECT_EQ(confirmed_cause(BubbleCause::kCollectiveWait, of_bubbles(job, 1.75 / 5)),
            "late kernels: ranks wait for rank 2, which comes 3000.0 us late in the mean: kernels "
            "twice as fast save 34.6 % of the bubbles, links 15.4 %");
}

TEST(NearZero, says_what_the_thing_is_hidden_behind) {
  const DeviceShares shares{0.037, 0.686, 0.649};
  const Sensitivities job = with(0.02, 0.01, 0.96);
  EXPECT_EQ(near_zero_reason(Bottleneck::kKernels, job, shares), "own work runs 3.7 % of the time");
  EXPECT_EQ(near_zero_reason(Bottleneck::kLink, job, shares),
            "collectives alone run 64.9 % of the time, nearly all of it waiting behind hosts");
  EXPECT_EQ(near_zero_reason(Bottleneck::kHost, job, shares), "");
  EXPECT_EQ(near_zero_reason(Bottleneck::kLink, job, {0.9, 0, 0}), "no collectives");
}

// Levels of detail of lanes, by numbers that can be summed by hand.

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
