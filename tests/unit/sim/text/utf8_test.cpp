// Where characters of UTF-8 begin and end.
#include "sim/text/utf8.hpp"

#include <gtest/gtest.h>

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

TEST(Utf8, LettersAreCountedOnce) { EXPECT_EQ(letter_count("\xC3\xA9t\xC3\xA9"), 3U); }

}  // namespace
}  // namespace bubblesim
