#include "capture/policy_host/policy_host.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;

TEST(SpanHistogram, OfNothingIsAllZero) {
  const SpanSummary summary = SpanHistogram{}.summary();
  EXPECT_EQ(summary.count, 0u);
  EXPECT_EQ(summary.p99, Duration{0});
}

TEST(SpanHistogram, ShortSpansAreExact) {
  SpanHistogram spans;
  for (int i = 1; i <= 50; ++i) spans.add(Duration{i});
  const SpanSummary summary = spans.summary();
  EXPECT_EQ(summary.count, 50u);
  EXPECT_EQ(summary.mean, Duration{26});  // 25.5, away from zero
  EXPECT_EQ(summary.p50, Duration{25});
  EXPECT_EQ(summary.p95, Duration{48});  // the 47.5th
  EXPECT_EQ(summary.p99, Duration{50});
  EXPECT_EQ(summary.max, Duration{50});
}

TEST(SpanHistogram, AnySpanIsWithinThreePerCent) {
  for (std::int64_t ns = 1; ns < std::int64_t{1} << 58; ns = ns * 21 / 20 + 1) {
    SpanHistogram spans;
    spans.add(Duration{ns});
    spans.add(Duration{ns * 4});
    const double error = static_cast<double>(spans.summary().p50.count() - ns);
    EXPECT_LE(std::abs(error), 0.03 * static_cast<double>(ns)) << ns;
  }
}

TEST(SpanHistogram, TakesNegativeAndHugeSpans) {
  SpanHistogram spans;
  spans.add(-5ns);
  EXPECT_EQ(spans.summary().max, Duration{0});
  spans.add(Duration::max());
  EXPECT_EQ(spans.summary().max, Duration::max());
  EXPECT_EQ(spans.summary().p50, Duration{0});
}

}  // namespace
}  // namespace bubblesim::capture
