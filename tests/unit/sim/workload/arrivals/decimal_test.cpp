#include "sim/workload/arrivals/decimal.hpp"

#include <gtest/gtest.h>

#include "sim/workload/arrivals/arrival_lines.hpp"

namespace bubblesim::workload {
namespace {

TEST(Decimal, SecondsBecomeExactNanoseconds) {
  EXPECT_EQ(parse_decimal("0.1", kSecondDigits), Duration{100'000'000});
  EXPECT_EQ(parse_decimal("4.314579", kSecondDigits), Duration{4'314'579'000});
  EXPECT_EQ(parse_decimal("0.000000001", kSecondDigits), Duration{1});
  EXPECT_EQ(parse_decimal("1048575.000000007", kSecondDigits), Duration{1'048'575'000'000'007});
}

TEST(Decimal, DigitsBelowANanosecondAreCutOff) {
  EXPECT_EQ(parse_decimal("0.0230560199975967", kSecondDigits), Duration{23'056'019});
  EXPECT_EQ(parse_decimal("0.0000000009", kSecondDigits), Duration{0});
}

TEST(Decimal, UnitShiftsThePoint) {
  EXPECT_EQ(parse_decimal("27482", kMillisecondDigits), Duration{27'482'000'000});
  EXPECT_EQ(parse_decimal("0.5", kMillisecondDigits), Duration{500'000});
}

TEST(Decimal, ExponentsShiftThePointToo) {
  EXPECT_EQ(parse_decimal("1e-05", kSecondDigits), Duration{10'000});
  EXPECT_EQ(parse_decimal("1.5E+3", kSecondDigits), Duration{1'500'000'000'000});
  EXPECT_EQ(parse_decimal("1e-999999999", kSecondDigits), Duration{0});
  EXPECT_EQ(parse_decimal("0e999999999", kSecondDigits), Duration{0});
}

TEST(Decimal, WhatIsNoTimeIsRefused) {
  for (const char* text : {"", "-1", "+1", ".5", "1x", "1e", "1e+", "nan", "inf", "0x10", "1 ",
                           "1e999999999", "3153600001", "99999999999999999999999"}) {
    EXPECT_FALSE(parse_decimal(text, kSecondDigits)) << text;
  }
}

TEST(DateTime, SevenDigitFractionsAreExact) {
  const auto first = parse_date_time("2023-11-16 18:15:46.6805900");
  const auto second = parse_date_time("2023-11-16 18:15:50.9951690");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*second - *first, Duration{4'314'579'000});  // 50.995169 - 46.68059
}

TEST(DateTime, CountsDaysFrom1970AcrossLeapYears) {
  const auto day = std::chrono::hours{24};
  EXPECT_EQ(*parse_date_time("1970-01-02 00:00:00"), day);
  EXPECT_EQ(*parse_date_time("2024-03-01 00:00:00") - *parse_date_time("2024-02-28T00:00:00"),
            2 * day);
}

TEST(DateTime, OffsetsAreTakenOff) {
  const auto utc = parse_date_time("2024-05-10 00:00:00.009930Z");
  EXPECT_EQ(parse_date_time("2024-05-10 00:00:00.009930+00:00"), utc);
  EXPECT_EQ(parse_date_time("2024-05-10 02:30:00.009930+02:30"), utc);
  EXPECT_EQ(parse_date_time("2024-05-09 16:00:00.009930-08:00"), utc);
}

TEST(DateTime, WhatIsNoTimeIsRefused) {
  for (const char* text :
       {"", "2023-11-16", "2023-13-01 00:00:00", "2023-02-29 00:00:00", "2023-11-16 24:00:00",
        "2023-11-16 18:60:00", "2023-11-16 18:15:46.", "2023-11-16 18:15:46.1e5",
        "2023-11-16 18:15:4", "2023/11/16 18:15:46", "2023-11-16 18:15:46+1:00",
        "1969-12-31 00:00:00", "2023-11-16_18:15:46", "2023-11-16 18:15:46.5 UTC"}) {
    EXPECT_FALSE(parse_date_time(text)) << text;
  }
}

}  // namespace
}  // namespace bubblesim::workload
