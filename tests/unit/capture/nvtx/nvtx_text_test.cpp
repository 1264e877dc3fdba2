#include "capture/record/nvtx/nvtx_text.hpp"

#include <gtest/gtest.h>

#include <random>

namespace bubblesim::capture {
namespace {

TEST(NvtxText, PlainNamesAreKept) {
  EXPECT_EQ(name_of("forward"), "forward");
  EXPECT_EQ(name_of(L"forward"), "forward");
  EXPECT_EQ(name_of("gr\xC3\xB6\xC3\x9F" "e"), "gr\xC3\xB6\xC3\x9F" "e");
}

TEST(NvtxText, NullIsEmpty) {
  EXPECT_EQ(name_of(static_cast<const char*>(nullptr)), "");
  EXPECT_EQ(name_of(static_cast<const wchar_t*>(nullptr)), "");
}

TEST(NvtxText, WideCharactersBecomeUtf8) {
  const wchar_t text[] = {L'a', 0xE9, 0x20AC, 0x1F600, 0};
  EXPECT_EQ(name_of(text), "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(NvtxText, WhatIsNoCharacterIsReplaced) {
  const wchar_t surrogate[] = {L'a', static_cast<wchar_t>(0xD800), L'b', 0};
  EXPECT_EQ(name_of(surrogate), "a\xEF\xBF\xBD" "b");
  const wchar_t beyond[] = {static_cast<wchar_t>(0x7FFFFFFF), 0};
  EXPECT_EQ(name_of(beyond), "\xEF\xBF\xBD");
  const wchar_t negative[] = {static_cast<wchar_t>(-1), 0};
  EXPECT_EQ(name_of(negative), "\xEF\xBF\xBD");
  EXPECT_EQ(name_of("a\xFF" "b"), "a\xEF\xBF\xBD" "b");
  EXPECT_EQ(name_of("\xC0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // an overlong null
  EXPECT_EQ(name_of("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // ends in the middle
}

TEST(NvtxText, LongNamesAreCutBetweenCharacters) {
  EXPECT_EQ(name_of(std::string(300, 'x').c_str()).size(), 256U);
  EXPECT_EQ(name_of(std::wstring(300, L'x').c_str()).size(), 256U);
  // 255 bytes, then a character of two: it would end at 257.
  EXPECT_EQ(name_of((std::string(255, 'x') + "\xC3\xB6").c_str()), std::string(255, 'x'));
  EXPECT_EQ(name_of((std::wstring(255, L'x') + wchar_t{0xF6}).c_str()), std::string(255, 'x'));
  EXPECT_EQ(name_of((std::string(254, 'x') + "\xC3\xB6zz").c_str()),
            std::string(254, 'x') + "\xC3\xB6");
}

TEST(NvtxText, NothingIsReadBeyondTheLimit) {
  const char text[4] = {'a', 'b', 'c', 'd'};  // no end
  EXPECT_EQ(name_of(text, 4), "abcd");
}

TEST(NvtxText, AnyBytesGiveAtMostTheLimit) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> byte(1, 255), length(0, 600);
  for (int i = 0; i < 2'000; ++i) {
    std::string text(static_cast<std::size_t>(length(random)), ' ');
    for (char& c : text) c = static_cast<char>(byte(random));
    const std::string name = name_of(text.c_str());
    EXPECT_LE(name.size(), kLongestName);
    EXPECT_EQ(name_of(name.c_str()), name);  // what came out is good
  }
}

}  // namespace
}  // namespace bubblesim::capture
