#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <tuple>
#include <vector>

#include "sim/workload/arrivals/arrival_lines.hpp"
#include "sim/workload/arrivals/arrival_process.hpp"
#include "sim/workload/arrivals/decimal.hpp"
#include "sim/workload/arrivals/request_lengths.hpp"

namespace bubblesim::workload {
namespace {

std::vector<SimTime> take(const ArrivalSpec& spec, std::size_t count, std::uint64_t seed = 1) {
  auto process = make_arrivals(spec, RandomStream(seed, "arrivals"));
  EXPECT_TRUE(process) << process.error().text();
  std::vector<SimTime> instants;
  while (process && instants.size() < count) {
    const auto next = (*process)->next();
    if (!next) break;
    instants.push_back(*next);
  }
  return instants;
}

struct Gaps {
  double mean_s;
  double cv;
};

Gaps gaps_of(const std::vector<SimTime>& instants) {
  double sum = 0;
  double squares = 0;
  SimTime last = kSimStart;
  for (const SimTime instant : instants) {
    const double gap = to_seconds(instant - last);
    last = instant;
    sum += gap;
    squares += gap * gap;
  }
  const auto count = static_cast<double>(instants.size());
  const double mean = sum / count;
  return {mean, std::sqrt(squares / count - mean * mean) / mean};
}

// 100000 gaps: the mean's standard error is cv / sqrt(n) = 0.3 % of the mean at cv 1.
TEST(ArrivalProcess, PoissonHasItsRateAndACvOfOne) {
  const Gaps gaps = gaps_of(take(PoissonArrivals{20}, 100'000));
  EXPECT_NEAR(gaps.mean_s, 0.05, 0.05 * 0.015);
  EXPECT_NEAR(gaps.cv, 1, 0.02);
}

TEST(ArrivalProcess, GammaHasItsRateAndItsCv) {
  const Gaps bursty = gaps_of(take(GammaArrivals{20, 2}, 100'000));
  EXPECT_NEAR(bursty.mean_s, 0.05, 0.05 * 0.03);
  EXPECT_NEAR(bursty.cv, 2, 0.06);
  const Gaps even = gaps_of(take(GammaArrivals{20, 0.1}, 10'000));
  EXPECT_NEAR(even.mean_s, 0.05, 0.05 * 0.005);
  EXPECT_NEAR(even.cv, 0.1, 0.005);
}

TEST(ArrivalProcess, SameSeedGivesTheSameInstants) {
  EXPECT_EQ(take(GammaArrivals{5, 2}, 100), take(GammaArrivals{5, 2}, 100));
  EXPECT_NE(take(GammaArrivals{5, 2}, 100, 1), take(GammaArrivals{5, 2}, 100, 2));
}

TEST(ArrivalProcess, InstantsNeverGoBack) {
  const auto instants = take(GammaArrivals{1e9, 3}, 10'000);
  EXPECT_TRUE(std::is_sorted(instants.begin(), instants.end()));
}

// Gaps of about 31 years: the tenth would lie beyond the range of SimTime.
TEST(ArrivalProcess, EndsWhereTimeEnds) {
  const auto instants = take(PoissonArrivals{1e-9}, 1000);
  EXPECT_LT(instants.size(), 100U);
  EXPECT_TRUE(std::is_sorted(instants.begin(), instants.end()));
}

TEST(ArrivalProcess, ImpossibleValuesAreFaults) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const RandomStream random(1, "arrivals");
  EXPECT_FALSE(make_arrivals(PoissonArrivals{0}, random));
  EXPECT_FALSE(make_arrivals(PoissonArrivals{-1}, random));
  EXPECT_FALSE(make_arrivals(PoissonArrivals{nan}, random));
  EXPECT_FALSE(make_arrivals(GammaArrivals{1, 0}, random));
  EXPECT_FALSE(make_arrivals(FileArrivals{"x", ArrivalFormat::kGaps, 0}, random));
  EXPECT_FALSE(make_arrivals(FileArrivals{"no/such/file", ArrivalFormat::kGaps, 1}, random));
}

TEST(ArrivalProcess, SpeedupDividesArrivalTimesRoundingDown) {
  const std::string path = testing::TempDir() + "bubblesim_speedup.json";
  std::ofstream(path) << "[0.000000003, 0.000000003]";  // at 3 ns and 6 ns
  const auto at = [](std::int64_t ns) { return SimTime{Duration{ns}}; };
  EXPECT_EQ(take(FileArrivals{path, ArrivalFormat::kGaps, 1}, 9), (std::vector{at(3), at(6)}));
  EXPECT_EQ(take(FileArrivals{path, ArrivalFormat::kGaps, 2}, 9), (std::vector{at(1), at(3)}));
  EXPECT_EQ(take(FileArrivals{path, ArrivalFormat::kGaps, 0.5}, 9), (std::vector{at(6), at(12)}));
  std::filesystem::remove(path);
}

RandomStream stream() { return RandomStream(1, "lengths"); }

std::vector<RecordedLength> three() { return {{10, 1, {7}}, {20, 2, {}}, {30, 3, {}}}; }

TEST(RequestLengths, FixedLengthsAreWhatTheySay) {
  LengthSequence lengths(DrawnLengths{FixedLength{7}, FixedLength{3}}, stream());
  EXPECT_EQ(lengths.length_of(0).prompt_tokens, 7U);
  EXPECT_EQ(lengths.length_of(5).output_tokens, 3U);
}

TEST(RequestLengths, TheListIsTakenInOrderAndAgain) {
  LengthSequence lengths(ListedLengths{three(), ListedLengths::Pick::kInOrder}, stream());
  EXPECT_EQ(lengths.length_of(0).hashes.size(), 1U);
  EXPECT_EQ(lengths.length_of(2).prompt_tokens, 30U);
  EXPECT_EQ(lengths.length_of(3).prompt_tokens, 10U);
}

TEST(RequestLengths, PairsDrawnFromAListStayTogetherAndLoseTheirHashes) {
  LengthSequence lengths(ListedLengths{three(), ListedLengths::Pick::kAtRandom}, stream());
  std::uint32_t seen = 0;
  for (std::uint64_t number = 0; number < 100; ++number) {
    const RecordedLength& length = lengths.length_of(number);
    EXPECT_EQ(length.prompt_tokens, 10 * length.output_tokens);
    EXPECT_TRUE(length.hashes.empty());
    seen |= 1U << length.output_tokens;
  }
  EXPECT_EQ(seen, 0b1110U);
}

TEST(RequestLengths, ANumberHasItsLengthWhicheverOthersWereAskedFor) {
  const DrawnLengths spec{LognormalLength{500, 1, 1, 4000}, LognormalLength{100, 0.5, 1, 1000}};
  LengthSequence every(spec, stream());
  LengthSequence few(spec, stream());
  for (std::uint64_t number = 0; number < 30; ++number) {
    const RecordedLength length = every.length_of(number);
    if (number % 3 != 0) continue;
    EXPECT_EQ(few.length_of(number).prompt_tokens, length.prompt_tokens);
  }
}

// Over 20,000 draws with a coefficient of variation of 0.5, the mean's standard error is 0.35 %.
TEST(RequestLengths, LognormalLengthsHaveTheirMeanAndTheirSpread) {
  LengthSequence lengths(
      DrawnLengths{LognormalLength{1000, 0.5, 1, 100'000}, FixedLength{1}}, stream());
  double sum = 0;
  double squares = 0;
  constexpr int kCount = 20'000;
  for (int number = 0; number < kCount; ++number) {
    const double tokens = lengths.length_of(static_cast<std::uint64_t>(number)).prompt_tokens;
    sum += tokens;
    squares += tokens * tokens;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 1000, 15);
  EXPECT_NEAR(std::sqrt(squares / kCount - mean * mean) / mean, 0.5, 0.02);
}

TEST(RequestLengths, LengthsStayWithinTheirBounds) {
  const LognormalLength spec{100, 3, 20, 200};
  EXPECT_EQ(longest(spec), 200U);
  LengthSequence lengths(DrawnLengths{spec, FixedLength{1}}, stream());
  for (std::uint64_t number = 0; number < 1000; ++number) {
    EXPECT_GE(lengths.length_of(number).prompt_tokens, 20U);
    EXPECT_LE(lengths.length_of(number).prompt_tokens, 200U);
  }
}

/// Prompts of 100 new tokens and 10 of output: a turn is 110 tokens.
DrawnLengths conversations(std::uint32_t users, std::uint32_t turns, std::uint32_t window) {
  return {FixedLength{100}, FixedLength{10}, Sessions{users, turns, window}};
}

TEST(RequestLengths, TurnsOfAConversationHoldAllThatWasSaidBefore) {
  LengthSequence lengths(conversations(2, 3, 10'000), stream());
  // Requests 0, 2, 4 are one user's, 1, 3, 5 the other's; the fourth turn begins anew.
  for (const auto& [number, prompt, conversation] :
       std::vector<std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>>{
           {0, 100, 1}, {1, 100, 2}, {2, 210, 1}, {3, 210, 2}, {4, 320, 1}, {6, 100, 3}}) {
    const RecordedLength& length = lengths.length_of(number);
    EXPECT_EQ(length.prompt_tokens, prompt) << number;
    EXPECT_EQ(length.output_tokens, 10U);
    EXPECT_EQ(length.conversation, conversation) << number;
  }
  EXPECT_EQ(largest(conversations(2, 3, 10'000)).prompt_tokens, 320U);
}

TEST(RequestLengths, AConversationEndsAtTheWindow) {
  // 110, 220, 330 tokens: the third turn would exceed 300.
  const DrawnLengths spec = conversations(1, 9, 300);
  LengthSequence lengths(spec, stream());
  EXPECT_EQ(lengths.length_of(1).prompt_tokens, 210U);
  EXPECT_EQ(lengths.length_of(2).prompt_tokens, 100U);
  EXPECT_EQ(lengths.length_of(2).conversation, 2U);
  EXPECT_EQ(largest(spec).prompt_tokens, 290U);
  EXPECT_EQ(largest(conversations(1, 9, 80)).prompt_tokens, 100U) << "no turn fits: it is refused";
}

TEST(Decimal, DigitsBecomeExactNanoseconds) {
  for (const auto& [text, digits, nanoseconds] :
       {std::tuple{"0.1", kSecondDigits, 100'000'000LL},
        {"4.314579", kSecondDigits, 4'314'579'000LL},
        {"0.000000001", kSecondDigits, 1LL},
        {"1048575.000000007", kSecondDigits, 1'048'575'000'000'007LL},
        // Digits below a nanosecond are cut off.
        {"0.0230560199975967", kSecondDigits, 23'056'019LL},
        {"0.0000000009", kSecondDigits, 0LL},
        // The unit and exponents shift the point.
        {"27482", kMillisecondDigits, 27'482'000'000LL},
        {"0.5", kMillisecondDigits, 500'000LL},
        {"1e-05", kSecondDigits, 10'000LL},
        {"1.5E+3", kSecondDigits, 1'500'000'000'000LL},
        {"1e-999999999", kSecondDigits, 0LL},
        {"0e999999999", kSecondDigits, 0LL}}) {
    EXPECT_EQ(parse_decimal(text, digits), Duration{nanoseconds}) << text;
  }
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
