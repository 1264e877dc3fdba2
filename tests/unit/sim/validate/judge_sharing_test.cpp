// Errors, summaries and orders of judged pairs, by hand.
#include "sim/validate/judge_sharing.hpp"

#include <gtest/gtest.h>

#include "sim/validate/sharing_text.hpp"

namespace bubblesim::validate {
namespace {

constexpr auto kP95At = static_cast<std::size_t>(SharingMetric::kP95);

JudgedPair judged(const char* system, double measured, double simulated) {
  JudgedPair out;
  out.row.inference = "service";
  out.row.training = "job";
  out.row.system = system;
  out.row.measured.fill(1);
  out.simulated.fill(1);
  out.row.measured[kP95At] = measured;
  out.simulated[kP95At] = simulated;
  return out;
}

TEST(JudgeSharing, ASummaryHasMeanBiasWorstAndShareWithinTheAim) {
  // +10 % and -20 % under mps: mean 15, bias -5; the aim of p95 is 15 %: one of two within.
  const auto all = summarise_sharing({judged("mps", 10, 11), judged("mps", 10, 8)});
  const SharingSummary& p95 = all[kP95At];
  ASSERT_EQ(p95.metric, SharingMetric::kP95);
  EXPECT_NEAR(p95.mean_absolute, 0.15, 1e-12);
  EXPECT_NEAR(p95.bias, -0.05, 1e-12);
  EXPECT_NEAR(p95.worst, -0.2, 1e-12);
  EXPECT_DOUBLE_EQ(p95.within_aim, 0.5);
}

TEST(JudgeSharing, TheOrderIsOfAllComparisons) {
  // Measured a < b < c; simulated b < a < c: of 3 comparisons (ab, ac, bc) ab is wrong.
  const auto orders =
      order_sharing({judged("a", 1, 2), judged("b", 2, 1), judged("c", 3, 3)});
  ASSERT_EQ(orders.size(), 2u);
  EXPECT_EQ(orders[0].metric, SharingMetric::kP95);
  EXPECT_EQ(orders[0].compared, 3u);
  EXPECT_EQ(orders[0].right, 2u);
  EXPECT_EQ(orders[0].measured, "a < b < c");
  EXPECT_EQ(orders[0].simulated, "b < a < c");
  EXPECT_EQ(orders[1].compared, 0u) << "equal figures have no order";
}

TEST(JudgeSharing, WhatIsNotPredictedIsInNoSummary) {
  JudgedPair stated = judged("tally", 1, 2);
  stated.outcome = Outcome::kStated;
  stated.note = "no policy tally";
  EXPECT_TRUE(summarise_sharing({stated}).empty());
  EXPECT_TRUE(order_sharing({stated}).empty());
  EXPECT_NE(sharing_rows_text({stated}).find("no policy tally"), std::string::npos);
  EXPECT_NE(sharing_csv({stated}).find("stated"), std::string::npos);
}

TEST(JudgeSharing, ATablesFaultsAreToldAtOnce) {
  const auto table = CsvTable::parse("role,inference,training,system\nfit,a,b,mps\n", "t.csv");
  ASSERT_TRUE(table);
  const auto rows = read_sharing_rows(*table);
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().size(), 7u);  // solo_avg_ms and six figures
}

}  // namespace
}  // namespace bubblesim::validate
