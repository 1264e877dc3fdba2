#include <gtest/gtest.h>

#include "sim/observe/report.hpp"
#include "sim/observe/timeline.hpp"
#include "sim/observe/usage_series.hpp"
#include "tests/unit/sim/instant.hpp"

namespace bubblesim::observe {
namespace {

//           0    10   20   30   40   50   60
// training  [work     ]                        0..20
// training            [collective ]            20..45
// filler         [work     ]                   10..30   and 50..60
TEST(ActivityMeter, SplitsTimeByWhatRanAtOnce) {
  ActivityMeter meter(kSimStart);
  meter.started(Activity::kTrainingKernel, at(0));
  meter.started(Activity::kFillerWork, at(10));
  meter.ended(Activity::kTrainingKernel, at(20));
  meter.started(Activity::kTrainingCollective, at(20));
  meter.ended(Activity::kFillerWork, at(30));
  meter.ended(Activity::kTrainingCollective, at(45));
  meter.started(Activity::kFillerWork, at(50));
  meter.advance(at(60));
  EXPECT_EQ(meter.busy(), Duration{55});                      // all but 45..50
  EXPECT_EQ(meter.busy_without_collectives(), Duration{40});  // 0..30 and 50..60
  EXPECT_EQ(meter.bubble(), Duration{40});                    // 20..60
  EXPECT_EQ(meter.collective_bubble(), Duration{25});         // 20..45
  EXPECT_EQ(meter.idle_bubble(), Duration{15});               // 45..60
  EXPECT_EQ(meter.recovered(), Duration{20});                 // 20..30 and 50..60
  EXPECT_EQ(meter.recovered_collective(), Duration{10});      // 20..30
}

//           0    10   20   30   40   50
// training  [copy         ]                   0..30
// training            [collective ]           20..45, that copy ends within it
// filler         [work     ]                  10..30
TEST(ActivityMeter, ACopyOfTrainingLeavesTheSmsFree) {
  ActivityMeter meter(kSimStart);
  meter.started(Activity::kTrainingTransfer, at(0));
  meter.started(Activity::kFillerWork, at(10));
  meter.started(Activity::kTrainingCollective, at(20));
  meter.ended(Activity::kTrainingTransfer, at(30));
  meter.ended(Activity::kFillerWork, at(30));
  meter.ended(Activity::kTrainingCollective, at(45));
  meter.advance(at(50));
  EXPECT_EQ(meter.bubble(), Duration{50});
  EXPECT_EQ(meter.transfer_bubble(), Duration{20});       // 0..20
  EXPECT_EQ(meter.collective_bubble(), Duration{25});     // 20..45
  EXPECT_EQ(meter.idle_bubble(), Duration{5});            // 45..50
  EXPECT_EQ(meter.recovered(), Duration{20});             // 10..30
  EXPECT_EQ(meter.recovered_transfer(), Duration{10});    // 10..20
  EXPECT_EQ(meter.recovered_collective(), Duration{10});  // 20..30
  EXPECT_EQ(meter.training_busy(), Duration{45});
}

TEST(ActivityMeter, CountsNothingBeforeTheWarmUpEnds) {
  ActivityMeter meter(at(15));
  meter.started(Activity::kTrainingKernel, at(0));
  meter.ended(Activity::kTrainingKernel, at(20));
  meter.advance(at(30));
  EXPECT_EQ(meter.busy(), Duration{5});
  EXPECT_EQ(meter.bubble(), Duration{10});
}

TEST(ActivityMeter, OperationsThatOverlapAreCountedOnce) {
  ActivityMeter meter(kSimStart);
  meter.started(Activity::kTrainingKernel, at(0));
  meter.started(Activity::kTrainingKernel, at(4));
  meter.ended(Activity::kTrainingKernel, at(6));
  meter.ended(Activity::kTrainingKernel, at(10));
  meter.advance(at(10));
  EXPECT_EQ(meter.busy(), Duration{10});
  EXPECT_EQ(meter.bubble(), Duration{0});
}

constexpr Duration operator""_ns(unsigned long long ns) {
  return Duration{static_cast<std::int64_t>(ns)};
}

TEST(UsageGrid, IntervalsAreOfOneLengthAndBeginAnewAtTheEndOfTheWarmUp) {
  const UsageGrid grid(10_ns, at(25));
  EXPECT_EQ(grid.next_boundary(at(0)), at(10));
  EXPECT_EQ(grid.next_boundary(at(10)), at(20));
  EXPECT_EQ(grid.next_boundary(at(20)), at(25));  // not 30
  EXPECT_EQ(grid.next_boundary(at(25)), at(35));
}

TEST(UsageGrid, CountsTheIntervalsOfARun) {
  const UsageGrid grid(10_ns, at(25));
  EXPECT_EQ(grid.count(at(0)), 0U);
  EXPECT_EQ(grid.count(at(20)), 2U);
  EXPECT_EQ(grid.count(at(21)), 3U);
  EXPECT_EQ(grid.count(at(25)), 3U);
  EXPECT_EQ(grid.count(at(55)), 6U);  // 10 20 25 | 35 45 55
  EXPECT_EQ(grid.count(at(56)), 7U);
  EXPECT_EQ(UsageGrid(10_ns, kSimStart).count(at(30)), 3U);
}

TEST(UsageGrid, AnIntervalLongerThanTimeItselfIsOne) {
  const UsageGrid grid(Duration::max(), kSimStart);
  EXPECT_EQ(grid.next_boundary(at(5)), SimTime::max());
  EXPECT_EQ(grid.count(at(1'000'000)), 1U);
}

// 30 of warm-up and 70 more in at most 5 intervals: of 20 they are 2 + 4; of 24, 2 + 3; of 23,
// 2 + 4.
TEST(UsageGrid, TheShortestIntervalThatFitsIsFound) {
  EXPECT_EQ(least_usage_interval(100_ns, 30_ns, 5), 24_ns);
  EXPECT_EQ(least_usage_interval(100_ns, 0_ns, 5), 20_ns);
  EXPECT_EQ(least_usage_interval(100_ns, 0_ns, 100), 1_ns);
  EXPECT_EQ(least_usage_interval(100_ns, 30_ns, 1), std::nullopt);  // they are 2 at least
}

//           0    10   20   30   40   50   60
// training  [work     ]                        0..20
// training            [collective ]            20..45
// filler         [work     ]                   10..30   and 50..60
TEST(UsageSeries, SplitsEachIntervalByWhoRan) {
  UsageSeries series;
  series.started(Activity::kTrainingKernel, at(0));
  series.started(Activity::kFillerWork, at(10));
  series.ended(Activity::kTrainingKernel, at(20));
  series.started(Activity::kTrainingCollective, at(20));
  series.close(at(25), {100, 40, Bytes{7}});
  series.ended(Activity::kFillerWork, at(30));
  series.ended(Activity::kTrainingCollective, at(45));
  series.close(at(50), {160, 40, Bytes{5}});
  series.started(Activity::kFillerWork, at(50));
  series.close(at(60), {160, 55, Bytes{5}});
  ASSERT_EQ(series.intervals().size(), 3U);
  const UsageInterval& first = series.intervals()[0];
  EXPECT_EQ(first.from, at(0));
  EXPECT_EQ(first.to, at(25));
  EXPECT_EQ(first.busy, 25_ns);
  EXPECT_EQ(first.training_busy, 25_ns);
  EXPECT_EQ(first.filler_busy, 15_ns);  // 10..25
  EXPECT_EQ(first.training_sm_ns, 100);
  EXPECT_EQ(first.filler_sm_ns, 40);
  EXPECT_EQ(first.memory, Bytes{7});
  const UsageInterval& second = series.intervals()[1];
  EXPECT_EQ(second.from, at(25));
  EXPECT_EQ(second.busy, 20_ns);           // 25..45
  EXPECT_EQ(second.training_busy, 20_ns);
  EXPECT_EQ(second.filler_busy, 5_ns);     // 25..30
  EXPECT_EQ(second.training_sm_ns, 60);    // 160 - 100
  EXPECT_EQ(second.filler_sm_ns, 0);
  const UsageInterval& third = series.intervals()[2];
  EXPECT_EQ(third.busy, 10_ns);
  EXPECT_EQ(third.training_busy, 0_ns);
  EXPECT_EQ(third.filler_busy, 10_ns);
  EXPECT_EQ(third.filler_sm_ns, 15);
}

// Each boundary is rounded, not each interval: three times 0.6 are 1.8, so 2 in all.
TEST(UsageSeries, SmTimeIsRoundedWithoutDrift) {
  UsageSeries series;
  series.close(at(1), {0.6, 0, {}});
  series.close(at(2), {1.2, 0, {}});
  series.close(at(3), {1.8, 0, {}});
  EXPECT_EQ(series.intervals()[0].training_sm_ns, 1);
  EXPECT_EQ(series.intervals()[1].training_sm_ns, 0);
  EXPECT_EQ(series.intervals()[2].training_sm_ns, 1);
}

TEST(UsageSeries, AnIntervalWithoutTimeIsNone) {
  UsageSeries series;
  series.close(at(0), {});
  series.close(at(4), {});
  series.close(at(4), {});
  EXPECT_EQ(series.intervals().size(), 1U);
}

TEST(UsageCsv, ALineIsAnInterval) {
  RunReport report;
  report.config = "one, two";
  report.policies.resize(2);
  report.policies[1].policy = "mps";
  UsageInterval interval;
  interval.from = at(1'000'000);
  interval.to = at(1'000'008);
  interval.busy = 6_ns;
  interval.training_busy = 4_ns;
  interval.filler_busy = 3_ns;
  interval.training_sm_ns = 20;  // of 8 ns x 10 SMs
  interval.filler_sm_ns = 10;
  interval.memory = Bytes{35'000'000'000};
  report.policies[1].usage = {{GpuId{3}, 10, {interval}}};
  EXPECT_EQ(usage_header(),
            "config,policy,policy_index,gpu,from_ms,to_ms,busy_fraction,training_busy_fraction,"
            "filler_busy_fraction,training_sm_fraction,filler_sm_fraction,memory_bytes,"
            "power_w,clock_mhz\n");
  EXPECT_EQ(usage_rows(report),
            "\"one, two\",mps,1,3,1.000000,1.000008,0.75,0.5,0.375,0.25,0.125,35000000000,,\n");
}

Slice slice_of(NameId name) {
  Slice slice;
  slice.name = name;
  slice.end = SimTime{Duration{5}};
  return slice;
}

TEST(Timeline, SameNameIsHeldOnce) {
  TimelineRecorder timeline;
  const NameId gemm = timeline.intern("gemm");
  EXPECT_NE(timeline.intern("relu"), gemm);
  EXPECT_EQ(timeline.intern("gemm"), gemm);
  EXPECT_EQ(timeline.text(gemm), "gemm");
}

TEST(Timeline, SlicesBeyondTheLimitAreDroppedAndCounted) {
  TimelineRecorder timeline({2, 1});
  const NameId name = timeline.intern("kernel");
  for (int i = 0; i < 5; ++i) timeline.add(slice_of(name));
  const TrackId track = timeline.add_track(GpuId{0}, "resident_sms");
  for (int i = 0; i < 3; ++i) timeline.add(CounterSample{track, kSimStart, 1.0});
  EXPECT_EQ(timeline.slices().size(), 2U);
  EXPECT_EQ(timeline.counters().count("timeline_slices_dropped"), 3U);
  EXPECT_EQ(timeline.samples().size(), 1U);
  EXPECT_EQ(timeline.counters().count("timeline_samples_dropped"), 2U);
}

TEST(Timeline, NothingDroppedLeavesNoCounter) {
  TimelineRecorder timeline;
  timeline.add(slice_of(timeline.intern("kernel")));
  EXPECT_TRUE(timeline.counters().empty());
}

TEST(Timeline, NamesFallBackToNumbers) {
  TimelineRecorder timeline;
  timeline.name_client(GpuId{1}, ClientId{0}, "training");
  EXPECT_EQ(timeline.client_name(GpuId{1}, ClientId{0}), "training");
  EXPECT_EQ(timeline.client_name(GpuId{0}, ClientId{0}), "client 0");
  EXPECT_EQ(timeline.gpu_name(GpuId{3}), "GPU 3");
}

}  // namespace
}  // namespace bubblesim::observe
