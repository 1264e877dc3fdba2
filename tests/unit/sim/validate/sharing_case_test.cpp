// Rates and metrics in words.
#include "sim/validate/sharing_case.hpp"

#include <gtest/gtest.h>

namespace bubblesim::validate {
namespace {

TEST(SharingCase, ARateMayNameItsUnit) {
  for (const char* words : {"net at 30.7/s +-50 %", "net at 30.7 requests/s beside a loop",
                            "at 30.7 req/s", "at 30.7 /sec", "at 30.7 requests per second",
                            "at 30.7 rps"}) {
    const auto rate = rate_in(words);
    ASSERT_TRUE(rate && *rate) << words;
    EXPECT_DOUBLE_EQ(**rate, 30.7) << words;
  }
  EXPECT_DOUBLE_EQ(**rate_in("at 1e3/s"), 1000);
}

TEST(SharingCase, WordsWithoutARateHaveNone) {
  for (const char* words : {"two closed loops", "closed loops/streams", "ten corps"}) {
    const auto rate = rate_in(words);
    ASSERT_TRUE(rate) << words;
    EXPECT_FALSE(*rate) << words;
  }
}

TEST(SharingCase, ARateThatIsNotReadIsAFault) {
  for (const char* words : {"at ./s", "at /s", "at 0/s", "at 0.0000001/s", "at 1000000000000/s",
                            "at 1,000/s", "at -5/s", "at 30 samples/s", "at 30/s beside 50/s"}) {
    EXPECT_FALSE(rate_in(words)) << words;
  }
}

TEST(SharingCase, PercentilesMayBeFractional) {
  EXPECT_DOUBLE_EQ(slice_metric("p99.9_ms")->figure.percent, 99.9);
  EXPECT_DOUBLE_EQ(slice_metric("p95_s")->ms, 1000);
  EXPECT_FALSE(slice_metric("p101_ms"));
  EXPECT_FALSE(slice_metric("px_ms"));
  EXPECT_FALSE(slice_metric("pnan_ms"));
  EXPECT_FALSE(slice_metric("p95"));
}

}  // namespace
}  // namespace bubblesim::validate
