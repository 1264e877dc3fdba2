#include "sim/workload/arrivals/request_lengths.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <vector>

namespace bubblesim::workload {
namespace {

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

}  // namespace
}  // namespace bubblesim::workload
