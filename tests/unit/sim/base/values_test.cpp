// Strong identifiers.
#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/nearest_rank.hpp"
#include "sim/base/random.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"

namespace bubblesim {
namespace {

static_assert(!std::is_convertible_v<GpuId, RankId>, "kinds of id do not mix");
static_assert(!std::is_convertible_v<int, GpuId>, "a number is not an id");
static_assert(sizeof(GpuId) == 4);

// The two clocks.

static_assert(!std::is_convertible_v<TraceTime, SimTime>, "recorded and simulated time differ");
static_assert(!std::is_constructible_v<SimTime, TraceTime>);

TEST(Time, ScalingRoundsHalfAwayFromZero) {
  EXPECT_EQ(scale(Duration{10}, 0.25), Duration{3});    // 2.5
  EXPECT_EQ(scale(Duration{-10}, 0.25), Duration{-3});  // -2.5
  EXPECT_EQ(scale(Duration{10}, 0.24), Duration{2});
  EXPECT_EQ(scale(Duration{7}, 1.0), Duration{7});
}

// Quantities as text: exact both ways, and every malformed text is refused with the units named.

using ::testing::AllOf, ::testing::HasSubstr;

TEST(Units, DurationsBecomeWholeNanoseconds) {
  EXPECT_EQ(parse_duration("5ms"), Duration{5000000});
  EXPECT_EQ(parse_duration("1.024ms"), Duration{1024000});
  EXPECT_EQ(parse_duration("3.2us"), Duration{3200});
  EXPECT_EQ(parse_duration("10s"), Duration{10000000000});
  EXPECT_EQ(parse_duration("0ns"), Duration{0});
  EXPECT_EQ(parse_duration("500ns"), Duration{500});
  EXPECT_EQ(parse_duration("1.5min"), Duration{90000000000});
  EXPECT_EQ(parse_duration("0.25h"), Duration{900000000000});
  EXPECT_EQ(parse_duration("1.0000000000000000000000000s"), Duration{1000000000});
}

TEST(Units, TheLargestDurationIsTheLastInt64) {
  EXPECT_EQ(parse_duration("9223372036854775807ns"), Duration::max());
  EXPECT_FALSE(parse_duration("9223372036854775808ns"));
  EXPECT_FALSE(parse_duration("2562048h"));  // 2562047.79 h is the limit
  EXPECT_FALSE(parse_duration("99999999999999999999999999999999999999999999s"));
}

TEST(Units, ADurationThatIsNotWholeIsRefusedNotRounded) {
  EXPECT_THAT(parse_duration("1.5ns").error().message, HasSubstr("not a whole number"));
  EXPECT_FALSE(parse_duration("3.2001us"));
  EXPECT_EQ(parse_duration("3.201us"), Duration{3201});
}

TEST(Units, ANumberWithoutAUnitIsRefusedWithTheUnitsAndAnExample) {
  EXPECT_THAT(parse_duration("5").error().message,
              AllOf(HasSubstr("found \"5\""), HasSubstr("no unit"), HasSubstr("\"1.024ms\""),
                    HasSubstr("ns, us, ms, s, min, h")));
  EXPECT_THAT(parse_bytes("5").error().message, HasSubstr("KiB"));
  EXPECT_THAT(parse_rate("5").error().message, HasSubstr("Gbit/s"));
}

TEST(Units, MalformedTextIsRefused) {
  for (const std::string text : {"", "ms", "-5ms", "+5ms", " 5ms", "5 ms", "5ms ", ".5ms", "5.ms",
                                 "1e3ns", "5MS", "5msec", "0x5ms", "1,5ms", "nan", "inf", "5ms5"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
  EXPECT_FALSE(parse_bytes("5KB"));
  EXPECT_FALSE(parse_bytes("-5B"));
  EXPECT_FALSE(parse_rate("5GB"));
  EXPECT_FALSE(parse_rate("5Gb/s"));
}

TEST(Units, ALongTextIsCutInTheMessage) {
  EXPECT_LT(parse_duration(std::string(1000000, '7')).error().message.size(), 300U);
  EXPECT_LT(parse_bytes("1" + std::string(1000000, 'B')).error().message.size(), 500U);
}

TEST(Units, BytesKnowDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_bytes("40GB"), Bytes{40000000000});
  EXPECT_EQ(parse_bytes("40GiB"), Bytes{42949672960});
  EXPECT_EQ(parse_bytes("512MiB"), Bytes{536870912});
  EXPECT_EQ(parse_bytes("1024B"), Bytes{1024});
  EXPECT_EQ(parse_bytes("1.5KiB"), Bytes{1536});
  EXPECT_FALSE(parse_bytes("0.5B"));
  EXPECT_EQ(parse_bytes("18446744073709551615B"), Bytes{std::numeric_limits<std::uint64_t>::max()});
  EXPECT_FALSE(parse_bytes("18446744073709551616B"));
  EXPECT_FALSE(parse_bytes("16777216TiB"));
}

TEST(Units, RatesAreBytesASecond) {
  EXPECT_EQ(parse_rate("900GB/s"), BytesPerSecond{900e9});
  EXPECT_EQ(parse_rate("4.8TB/s"), BytesPerSecond{4.8e12});
  EXPECT_EQ(parse_rate("100Gbit/s"), BytesPerSecond{12.5e9});
  EXPECT_EQ(parse_rate("0.3B/s"), BytesPerSecond{0.3});
  EXPECT_FALSE(parse_rate(std::string(400, '9') + "TB/s"));
}

TEST(Units, DurationsAreShownInTheLargestUnitThatIsNotAboveThem) {
  EXPECT_EQ(format_duration(Duration{1024000}), "1.024ms");
  EXPECT_EQ(format_duration(Duration{0}), "0ns");
  EXPECT_EQ(format_duration(Duration{999}), "999ns");
  EXPECT_EQ(format_duration(Duration{1500000001}), "1.500000001s");
  EXPECT_EQ(format_duration(Duration{-5000}), "-5us");
  EXPECT_EQ(format_duration(Duration::min()), "-9223372036.854775808s");
}

TEST(Units, BytesAndRatesAreShownShort) {
  EXPECT_EQ(format_bytes(Bytes{0}), "0B");
  EXPECT_EQ(format_bytes(Bytes{40000000000}), "40GB");
  EXPECT_EQ(format_bytes(Bytes{42949672960}), "40GiB");
  EXPECT_EQ(format_bytes(Bytes{1001}), "1001B");
  EXPECT_EQ(format_rate(BytesPerSecond{900e9}), "900GB/s");
  EXPECT_EQ(format_rate(BytesPerSecond{0}), "0B/s");
  EXPECT_EQ(format_rate(BytesPerSecond{2.039e12}), "2.039TB/s");
}

TEST(Units, WhatIsShownReadsBackTheSame) {
  std::uint64_t value = 1;
  for (int i = 0; i < 2000; ++i) {
    value = value * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::uint64_t part = value >> (i % 63);
    const Duration span{static_cast<std::int64_t>(part >> 1U)};
    EXPECT_EQ(parse_duration(format_duration(span)), span);
    EXPECT_EQ(parse_bytes(format_bytes(Bytes{part})), Bytes{part});
    const BytesPerSecond rate{static_cast<double>(part) / 1024.0};
    EXPECT_EQ(parse_rate(format_rate(rate)), rate) << format_rate(rate);
  }
}

// Input faults as values.

TEST(Result, TheTextLeavesOutWhatIsEmpty) {
  EXPECT_EQ((Error{"f.json", "/a", "bad"}.text()), "f.json: /a: bad");
  EXPECT_EQ((Error{"f.json", "", "bad"}.text()), "f.json: bad");
  EXPECT_EQ((Error{"", "", "bad"}.text()), "bad");
}

// Seeded streams: the same numbers on every machine, for ever.

// Written by the first version of the code; a change of any is a change of all results.
TEST(Random, TheFirstNumbersOfAStreamNeverChange) {
  RandomStream stream(1, "arrivals");
  EXPECT_EQ(stream.uniform(), 0.43812014121584386);
  EXPECT_EQ(stream.uniform(), 0.97790481001508911);
  EXPECT_EQ(stream.uniform(), 0.77745118405452029);
  EXPECT_EQ(stream.uniform(), 0.46174832860724663);
  EXPECT_DOUBLE_EQ(stream.normal(1.0, 0.1), 0.95747373322993068);
  EXPECT_DOUBLE_EQ(stream.gamma(2.0, 0.5), 2.3203506301622285);
  EXPECT_DOUBLE_EQ(stream.exponential(2.0), 3.9695160391276585);
}

TEST(Random, AnotherNameOrSeedGivesOtherNumbers) {
  RandomStream base(7, "x");
  const double first = base.uniform();
  EXPECT_NE(first, RandomStream(7, "y").uniform());
  EXPECT_NE(first, RandomStream(8, "x").uniform());
}

TEST(Random, MeansAreThoseAskedFor) {
  RandomStream stream(3, "means");
  constexpr int kDraws = 100000;
  double exponential = 0;
  double gamma = 0;
  double gamma_squared = 0;
  for (int i = 0; i < kDraws; ++i) {
    exponential += stream.exponential(2.0);
    const double value = stream.gamma(4.0, 0.5);
    gamma += value;
    gamma_squared += value * value;
  }
  EXPECT_NEAR(exponential / kDraws, 2.0, 0.03);  // deviation of the mean: 2 / sqrt(1e5) = 0.006
  const double mean = gamma / kDraws;
  EXPECT_NEAR(mean, 4.0, 0.03);
  EXPECT_NEAR(gamma_squared / kDraws - mean * mean, 4.0, 0.2);  // (0.5 * 4)^2
}

TEST(UpperMedian, IsTheUpperOfTwoMiddleValues) {
  EXPECT_EQ(upper_median<int>({9, 1, 4}), 4);
  EXPECT_EQ(upper_median<int>({4, 9, 1, 7}), 7);
  EXPECT_EQ(upper_median<int>({}), 0);
}

TEST(InterpolatedQuantile, LiesBetweenTwoValues) {
  EXPECT_DOUBLE_EQ(interpolated_quantile({1, 2, 3}, 0.5), 2);
  EXPECT_DOUBLE_EQ(interpolated_quantile({1, 2}, 0.9), 1.9);
  EXPECT_DOUBLE_EQ(interpolated_quantile({7}, 0.99), 7);
  EXPECT_DOUBLE_EQ(interpolated_quantile({}, 0.5), 0);
}

// Data-quality counters.

constexpr CounterSpec kOrphans{"orphan_kernels", Severity::kLoss, "Kernels without a launch."};
constexpr CounterSpec kClamped{"clamped", Severity::kNotice, "Durations set to zero."};
constexpr CounterSpec kBroken{"broken", Severity::kError, "Records that contradict."};

class Counters : public ::testing::Test {
 protected:
  CounterSet set;
};

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

// Characters of UTF-8: where they begin and end, and what stands where there is none.
TEST(Utf8, CharactersHaveTheLengthOfTheirNumber) {
  EXPECT_EQ(character_length("a\xC3\xA9"), 1U);
  EXPECT_EQ(character_length("\xC3\xA9z"), 2U);
  EXPECT_EQ(character_length("\xE2\x82\xAC"), 3U);
  EXPECT_EQ(character_length("\xF0\x9F\x98\x80"), 4U);
}

TEST(Utf8, WhatIsNoCharacterHasNoLength) {
  EXPECT_EQ(character_length(""), 0U);
  EXPECT_EQ(character_length("\x80"), 0U) << "a later byte alone";
  EXPECT_EQ(character_length("\xC3"), 0U) << "cut";
  EXPECT_EQ(character_length("\xE2\x82z"), 0U) << "cut by another character";
  EXPECT_EQ(character_length("\xC1\xBF"), 0U) << "longer than needed, of two bytes";
  EXPECT_EQ(character_length("\xE0\x9F\xBF"), 0U) << "of three";
  EXPECT_EQ(character_length("\xF0\x8F\xBF\xBF"), 0U) << "of four";
  EXPECT_EQ(character_length("\xED\xA0\x80"), 0U) << "a surrogate";
  EXPECT_EQ(character_length("\xF4\x90\x80\x80"), 0U) << "beyond U+10FFFF";
}

TEST(Utf8, EachByteOfNoCharacterIsReplaced) {
  const std::string ascii(45, 'x');  // a block of 32 bytes, a word of 8 and 5
  EXPECT_TRUE(is_utf8(ascii + "\xC3\xA9" + ascii));
  EXPECT_EQ(repaired_utf8(ascii + "\xC3\xA9" + ascii), ascii + "\xC3\xA9" + ascii);
  for (std::size_t place = 0; place < ascii.size(); ++place) {
    std::string text = ascii;
    text[place] = '\xE2';
    std::string repaired = ascii;
    repaired.replace(place, 1, kReplacementCharacter);
    EXPECT_FALSE(is_utf8(text)) << place;
    EXPECT_EQ(repaired_utf8(text), repaired) << place;
  }
}

TEST(Utf8, NumbersAreWrittenAsTheyAreRead) {
  std::string text;
  for (const std::uint32_t number : {0x41U, 0xE9U, 0x20ACU, 0x1F600U}) {
    append_character(text, number);
  }
  EXPECT_EQ(text, "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  for (const std::uint32_t none : {0xD800U, 0xDFFFU, 0x110000U}) {
    std::string out;
    append_character(out, none);
    EXPECT_EQ(out, kReplacementCharacter) << none;
  }
}

TEST(Utf8, CutsFallBetweenCharacters) {
  EXPECT_EQ(uncut_length("a\xC3\xA9", 3), 3U);
  EXPECT_EQ(uncut_length("a\xC3\xA9", 2), 1U);
  EXPECT_EQ(uncut_length("\x80\x80", 1), 0U);
}

TEST(Utf8, LettersAreCountedOnce) { EXPECT_EQ(letter_count("\xC3\xA9t\xC3\xA9"), 3U); }

// The nearest valid name, and the words around it.

constexpr std::array<std::string_view, 3> kPolicies{"exclusive", "mps", "timeslice"};

TEST(Nearest, OneEditAwayIsFound) {
  EXPECT_EQ(nearest_name("mpss", kPolicies), "mps");
  EXPECT_EQ(nearest_name("msp", kPolicies), "mps");  // swapped neighbours: one edit
  EXPECT_EQ(nearest_name("time_slice", kPolicies), "timeslice");
  EXPECT_EQ(nearest_name("MPS", kPolicies), "mps");  // case costs nothing
}

TEST(Nearest, MoreThanAThirdEditedIsNotNear) {
  EXPECT_EQ(nearest_name("mig", kPolicies), std::nullopt);  // 2 of 3
  EXPECT_EQ(nearest_name("", kPolicies), std::nullopt);
  EXPECT_EQ(nearest_name("mps", std::vector<std::string_view>{}), std::nullopt);
}

TEST(Nearest, TiesGoToTheFirst) {
  EXPECT_EQ(nearest_name("bat", std::vector<std::string_view>{"cat", "hat"}), "cat");
}

TEST(Nearest, TheMessageNamesTheNearestAndAllKnown) {
  EXPECT_EQ(unknown_name_message("policy", "mpss", kPolicies),
            "unknown policy \"mpss\"; did you mean \"mps\"? Known: exclusive, mps, timeslice");
  EXPECT_EQ(unknown_name_message("policy", "zzz", kPolicies),
            "unknown policy \"zzz\"; known: exclusive, mps, timeslice");
  EXPECT_EQ(unknown_name_message("policy", "a", std::vector<std::string>{}),
            "unknown policy \"a\"; known: none");
}

TEST(Nearest, HugeNamesAreCutAndCostNothing) {
  const std::string huge(1000000, 'm');
  EXPECT_EQ(nearest_name(huge, std::vector<std::string_view>{huge}), std::nullopt);
  EXPECT_LT(unknown_name_message("policy", huge, kPolicies).size(), 200U);
  std::vector<std::string> many;
  for (int i = 0; i < 30; ++i) many.push_back("n" + std::to_string(i));
  EXPECT_TRUE(unknown_name_message("name", "zz", many).ends_with("n22, n23 and 6 more"));
}

TEST(Nearest, QuotingShowsControlCharactersAndNeverCutsALetter) {
  EXPECT_EQ(quote_found("a\nb"), "\"a\\x0ab\"");
  const std::string letters = std::string(59, 'a') + "\xC3\xA9tude";  // e acute at bytes 59, 60
  EXPECT_EQ(quote_found(letters), "\"" + std::string(59, 'a') + "...\"");
}

// A device's name that sets a colour: the terminal gets the letters, the lines stay.
TEST(EscapeControls, LeavesLinesWhereTheTextHasLines) {
  EXPECT_EQ(escape_controls("A\x1b[31m\n"), "A\\x1b[31m\\x0a");
  EXPECT_EQ(escape_but_lines("A\x1b[31m\nB\r\n"), "A\\x1b[31m\nB\\x0d\n");
  EXPECT_EQ(escape_but_lines(""), "");
}

}  // namespace
}  // namespace bubblesim
