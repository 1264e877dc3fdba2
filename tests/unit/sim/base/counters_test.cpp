// Data-quality counters.
#include "sim/base/counters.hpp"

#include <gtest/gtest.h>

#include <string>

namespace bubblesim {
namespace {

constexpr CounterSpec kOrphans{"orphan_kernels", Severity::kLoss, "Kernels without a launch."};
constexpr CounterSpec kClamped{"clamped", Severity::kNotice, "Durations set to zero."};
constexpr CounterSpec kBroken{"broken", Severity::kError, "Records that contradict."};

class Counters : public ::testing::Test {
 protected:
  CounterSet set;
};

TEST_F(Counters, CountsAddUpByName) {
  set.add(kOrphans);
  set.add(kOrphans, 4);
  EXPECT_EQ(set.count("orphan_kernels"), 5U);
  EXPECT_EQ(set.count("never_counted"), 0U);
}

TEST_F(Counters, AZeroCountIsNotHeld) {
  set.add(kOrphans, 0);
  EXPECT_TRUE(set.empty());
}

TEST_F(Counters, TheyComeInNameOrderWithSeverityAndHelp) {
  set.add(kOrphans);
  set.add(kClamped);
  ASSERT_EQ(set.begin()->first, "clamped");
  EXPECT_EQ(set.begin()->second.severity, Severity::kNotice);
  EXPECT_EQ(set.begin()->second.help, "Durations set to zero.");
  EXPECT_EQ(std::next(set.begin())->first, "orphan_kernels");
}

TEST_F(Counters, MergingAddsTheOthersCounts) {
  CounterSet a;
  a.add(kOrphans, 2);
  CounterSet b;
  b.add(kOrphans, 3);
  b.add(kClamped, 1);
  a.merge(b);
  EXPECT_EQ(a.count("orphan_kernels"), 5U);
  EXPECT_EQ(a.count("clamped"), 1U);
}

TEST_F(Counters, OnlySeverityErrorIsAnError) {
  set.add(kOrphans);
  EXPECT_FALSE(set.has_error());
  set.add(kBroken);
  EXPECT_TRUE(set.has_error());
}

TEST_F(Counters, ACountThatIsTakenAnewReplacesTheOldOne) {
  set.add(kOrphans, 3);
  set.reset(kOrphans, 2);
  EXPECT_EQ(set.count("orphan_kernels"), 2U);
  set.reset(kOrphans, 0);
  EXPECT_TRUE(set.empty());
}

TEST_F(Counters, SeveritiesHaveNames) {
  EXPECT_EQ(severity_name(Severity::kInfo), "info");
  EXPECT_EQ(severity_name(Severity::kNotice), "notice");
  EXPECT_EQ(severity_name(Severity::kLoss), "loss");
  EXPECT_EQ(severity_name(Severity::kError), "error");
}

}  // namespace
}  // namespace bubblesim
