#include "sim/observe/usage_series.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace bubblesim::observe
