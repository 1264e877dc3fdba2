// Characters of UTF-8: where they begin and end, and what stands where there is none.
#include <array>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/nearest.hpp"
#include "sim/base/utf8.hpp"

namespace bubblesim {
namespace {

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
  EXPECT_EQ(nearest_name("mps", std::vector<std::string>{}), std::nullopt);
}

TEST(Nearest, TiesGoToTheFirst) {
  EXPECT_EQ(nearest_name("bat", std::vector<std::string>{"cat", "hat"}), "cat");
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
  EXPECT_EQ(nearest_name(huge, std::vector<std::string>{huge}), std::nullopt);
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
