// Summaries and orders, by hand.
#include "sim/validate/measured_summary.hpp"

#include <gtest/gtest.h>

namespace bubblesim::validate {
namespace {

MeasuredCell cell(const std::string& policy, MeasuredMetric metric, double measured,
                  double simulated) {
  MeasuredCell out;
  out.config = "c";
  out.policy = policy;
  out.filler = metric == MeasuredMetric::kIteration ? "" : "svc";
  out.metric = metric;
  out.measured = out.measured_low = out.measured_high = measured;
  out.simulated = simulated;
  out.repetitions = 1;
  return out;
}

MeasuredCell rate(const std::string& policy, double measured, double simulated) {
  return cell(policy, MeasuredMetric::kFillerThroughput, measured, simulated);
}

TEST(MeasuredSummary, HasBiasMeanPercentilesAndTheWorstCell) {
  // +10, -2, +4, -8 %: mean |e| 6, bias 1, sorted 2 4 8 10: p50 is the 2nd, p90 the 4th.
  const auto all = summarise_measured({rate("mps", 100, 110), rate("mps", 100, 98),
                                       rate("tgs", 100, 104), rate("tgs", 100, 92)});
  ASSERT_EQ(all.size(), 3U) << "all, mps, tgs";
  EXPECT_EQ(all[0].policy, "");
  EXPECT_EQ(all[0].rows, 4U);
  EXPECT_NEAR(all[0].mean_absolute, 6, 1e-9);
  EXPECT_NEAR(all[0].bias, 1, 1e-9);
  EXPECT_NEAR(all[0].p50, 4, 1e-9);
  EXPECT_NEAR(all[0].p90, 10, 1e-9);
  EXPECT_NEAR(all[0].worst, 10, 1e-9);
  EXPECT_EQ(all[0].worst_label, "c/mps/svc");
  EXPECT_EQ(all[2].policy, "tgs");
  EXPECT_NEAR(all[2].worst, -8, 1e-9);
}

TEST(MeasuredSummary, AnAimBoundsTheMeanOverAllPolicies) {
  const auto close = summarise_measured({rate("mps", 100, 104)});
  ASSERT_TRUE(close[0].aim);
  EXPECT_DOUBLE_EQ(close[0].aim->bound, 5);
  EXPECT_TRUE(close[0].met());
  EXPECT_FALSE(summarise_measured({rate("mps", 100, 106)})[0].met());
  EXPECT_FALSE(close[1].aim) << "not of one policy";
  EXPECT_DOUBLE_EQ(measured_aim(MeasuredMetric::kSlowdown)->bound, 2);
  EXPECT_DOUBLE_EQ(measured_aim(MeasuredMetric::kP95)->bound, 10);
}

TEST(MeasuredSummary, CellsThatAreNotPredictedDoNotCount) {
  MeasuredCell stated = rate("mps", 100, 110);
  stated.outcome = RowOutcome::kStated;
  EXPECT_TRUE(summarise_measured({stated}).empty());
  EXPECT_TRUE(order_measured({stated, stated}, 0).empty());
}

TEST(MeasuredOrder, MostRequestsComeFirst) {
  // Measured a 30, b 20, c 10; simulated b 30, a 20, c 10: of ab, ac, bc one is wrong.
  const auto orders = order_measured({rate("a", 30, 20), rate("b", 20, 30), rate("c", 10, 10)},
                                     0.01);
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].compared, 3U);
  EXPECT_EQ(orders[0].wrong, 1U);
  EXPECT_NEAR(orders[0].kendall(), 1. / 3, 1e-9);  // (2 - 1) / 3
  EXPECT_EQ(orders[0].measured, "a > b > c");
  EXPECT_EQ(orders[0].simulated, "b > a > c");
}

TEST(MeasuredOrder, TheShortestIterationComesFirst) {
  const auto orders = order_measured({cell("a", MeasuredMetric::kIteration, 12, 12),
                                      cell("b", MeasuredMetric::kIteration, 10, 10)}, 0.01);
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].measured, "b > a");
  EXPECT_EQ(orders[0].wrong, 0U);
}

TEST(MeasuredOrder, WhatMeasurementsDoNotTellApartIsNotCompared) {
  // a and b: ranges 19 to 21 and 20.5 to 22 meet. b and c: 1 % of 21 apart. a and c: 20, 21.2.
  MeasuredCell a = rate("a", 20, 1);
  a.measured_low = 19;
  a.measured_high = 21;
  MeasuredCell b = rate("b", 21, 2);
  b.measured_low = 20.5;
  b.measured_high = 22;
  const auto orders = order_measured({a, b, rate("c", 21.2, 3)}, 0.01);
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].ties, 2U);
  EXPECT_EQ(orders[0].compared, 1U);
  EXPECT_EQ(orders[0].wrong, 0U);
  EXPECT_EQ(orders[0].measured, "c = b = a");
}

TEST(MeasuredOrder, EqualSimulatedFiguresDoNotOrderWhatDiffers) {
  const auto orders = order_measured({rate("a", 30, 20), rate("b", 20, 20)}, 0.01);
  EXPECT_EQ(orders[0].wrong, 1U);
  EXPECT_DOUBLE_EQ(orders[0].kendall(), -1);
}

}  // namespace
}  // namespace bubblesim::validate
