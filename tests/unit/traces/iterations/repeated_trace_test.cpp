// A pass as it repeats. Times in us.
#include <gtest/gtest.h>

#include "tests/unit/sim/workload/trace_builder.hpp"
#include "tests/unit/traces/inspect/small_trace.hpp"
#include "traces/iterations/intervals.hpp"
#include "traces/iterations/job_pass.hpp"

namespace bubblesim::traces {
namespace {

// What a user may write for iterations.

using Kind = IterationChoice::Kind;

TEST(IterationChoice, IsSettledAllANumberOrARange) {
  EXPECT_EQ(*parse_iteration_choice("settled"), IterationChoice{});
  EXPECT_EQ(*parse_iteration_choice("all"), IterationChoice{Kind::kAll});
  EXPECT_EQ(*parse_iteration_choice("7"), (IterationChoice{Kind::kRange, 7, 7}));
  EXPECT_EQ(*parse_iteration_choice("5-9"), (IterationChoice{Kind::kRange, 5, 9}));
}

TEST(IterationChoice, TextIsWhatIsRead) {
  for (const char* text : {"settled", "all", "7", "5-9"}) {
    EXPECT_EQ(iteration_choice_text(*parse_iteration_choice(text)), text);
  }
}

TEST(IterationChoice, AnythingElseIsAFaultThatSaysWhatIsAllowed) {
  for (const char* text : {"", "steady", "-3", "3-", "9-5", "1-2-3", "7 "}) {
    const auto choice = parse_iteration_choice(text);
    ASSERT_FALSE(choice) << text;
    EXPECT_EQ(choice.error().message,
              "found iterations \"" + std::string(text) +
                  "\"; expected \"settled\", \"all\", a number as \"7\" or a range as \"5-9\"");
  }
}

std::int64_t us(TraceTime at) { return at.time_since_epoch().count() / 1000; }

using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;

RepeatedTrace repeated(const workload::TraceBuilder& job) {
  const RankTrace trace = job.trace();
  return repeated_trace(trace, *find_rank_pass(trace));
}

Spans spans(const RankTrace& trace) {
  Spans result;
  for (const DeviceOp& op : trace.device_ops) result.emplace_back(us(op.start), us(op.end()));
  return result;
}

// A pass of 100, from 0: kernels at [10, 20] and [80, 100]. Once more, a hundred before.
TEST(RepeatedTrace, HoldsThePassAndTheOneBefore) {
  workload::TraceBuilder job;
  job.iteration(0, 100).kernel({5, 7, 10, 20}).kernel({30, 32, 80, 100});
  const RepeatedTrace result = repeated(job);
  EXPECT_EQ(spans(result.trace), (Spans{{-90, -80}, {-20, 0}, {10, 20}, {80, 100}}));
  EXPECT_EQ(us(result.window.begin), 0);
  EXPECT_EQ(us(result.window.end), 100);
  EXPECT_EQ(us(result.trace.host_calls[result.trace.device_ops[1].launch].start), -70);
}

// Work of a pass of 100 that takes until 130: the window of a hundred ends there.
TEST(RepeatedTrace, WorkThatRunsIntoTheNextPassIsThere) {
  workload::TraceBuilder job;
  job.iteration(0, 100).iteration(100, 200);
  for (const std::int64_t begin : {0, 100}) job.kernel({begin, begin + 2, begin + 60, begin + 130});
  const RepeatedTrace result = repeated(job);
  EXPECT_EQ(spans(result.trace), (Spans{{60, 130}, {160, 230}}));
  EXPECT_EQ(us(result.window.begin), 130);
  EXPECT_EQ(us(result.window.end), 230);
}

// A pass of 100 whose exchange takes until 190 of its own time: what runs beside that one in
// [190, 290] is the kernel of the pass after it, and the exchange of the pass before has ended.
TEST(RepeatedTrace, WorkThatOutlastsThePassRunsBesideThePassAfter) {
  workload::TraceBuilder job(0, 1, 2);
  job.iteration(0, 100).iteration(100, 200);
  for (const std::int64_t begin : {0, 100}) {
    job.kernel({begin, begin + 2, begin + 10, begin + 40});
    job.kernel({begin + 5, begin + 7, begin + 120, begin + 190, 1});
  }
  const RepeatedTrace result = repeated(job);
  EXPECT_EQ(us(result.window.begin), 190);
  EXPECT_EQ(us(result.window.end), 290);
  Spans inside;
  for (const auto& span : spans(result.trace)) {
    if (span.second > 190 && span.first < 290) inside.push_back(span);
  }
  EXPECT_EQ(inside, (Spans{{210, 240}, {220, 290}}));
}

// The wait of [2, 50] for work from before is gone: what was at 0 is at 48.
TEST(RepeatedTrace, HasNoWaitsForWorkFromBefore) {
  workload::TraceBuilder job;
  job.call(HostCallKind::kDeviceSync, {0, 50}).kernel({50, 52, 55, 75});
  const RepeatedTrace result = repeated(job);
  EXPECT_EQ(us(result.trace.host_calls.back().start), 50);
  EXPECT_EQ(us(result.trace.host_calls[result.trace.host_calls.size() - 2].start), 48);
  EXPECT_EQ(us(result.window.end) - us(result.window.begin), 20);
}

// Set operations on spans of time.

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
