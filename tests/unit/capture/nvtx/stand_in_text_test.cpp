#include "capture/record/nvtx/nvtx_text.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace bubblesim::capture {
namespace {

using traces::CollectiveKind;
using Ranks = std::vector<std::uint32_t>;

Ranks ranks(const std::string& text) {
  return read_announcement("bubblesim.collective ranks=" + text).peers;
}

TEST(StandInText, SaysEverythingOfACollective) {
  const CollectiveEvent event = read_announcement(
      "bubblesim.collective op=all_reduce bytes=26214400 dtype=bfloat16 group=dp size=8 rank=3 "
      "seq=12 async=1 ranks=0-7");
  EXPECT_EQ(event.source, traces::CollectiveSource::kStandIn);
  EXPECT_EQ(event.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(event.bytes, 26'214'400U);
  EXPECT_EQ(event.group, "dp");
  EXPECT_EQ(event.group_size, 8U);
  EXPECT_EQ(event.sequence, 12U);
  EXPECT_TRUE(event.sequence_recorded);
  EXPECT_EQ(event.peers, (Ranks{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(StandInText, OnlyTheFirstWordMakesOne) {
  EXPECT_TRUE(announces_collective("bubblesim.collective"));
  EXPECT_TRUE(announces_collective("bubblesim.collective op=send"));
  EXPECT_FALSE(announces_collective("bubblesim.collectives op=send"));
  EXPECT_FALSE(announces_collective("bubblesim.fill op=send"));
  EXPECT_FALSE(announces_collective(""));
}

TEST(StandInText, WhatIsAbsentOrOddIsNotRecorded) {
  const CollectiveEvent empty = read_announcement("bubblesim.collective");
  EXPECT_EQ(empty.kind, CollectiveKind::kUnknown);
  EXPECT_FALSE(empty.sequence_recorded);
  const CollectiveEvent odd = read_announcement(
      "bubblesim.collective op=juggle bytes=12x seq=-1 size=99999999999999 new=1 word =x");
  EXPECT_EQ(odd.kind, CollectiveKind::kUnknown);
  EXPECT_EQ(odd.bytes, 0U);
  EXPECT_EQ(odd.group_size, 0U);
  EXPECT_FALSE(odd.sequence_recorded);
}

TEST(StandInText, RanksAreSpansStepsAndLists) {
  EXPECT_EQ(ranks("3-15/4"), (Ranks{3, 7, 11, 15}));
  EXPECT_EQ(ranks("0,3,5"), (Ranks{0, 3, 5}));
  EXPECT_EQ(ranks("6"), (Ranks{6}));
  EXPECT_TRUE(ranks("").empty());
  EXPECT_TRUE(ranks("7-3").empty());
  EXPECT_TRUE(ranks("0-7/0").empty());
  EXPECT_TRUE(ranks("a").empty());
  EXPECT_EQ(ranks("0-4294967295").size(), 65'536U);  // bounded
}

TEST(StandInText, AnyTextIsRead) {
  std::mt19937 random(11);
  const std::string letters = "=- /,0123456789opseqranksbytes\x80\xFF";
  std::uniform_int_distribution<std::size_t> letter(0, letters.size() - 1), length(0, 120);
  for (int i = 0; i < 5'000; ++i) {
    std::string text = "bubblesim.collective ";
    for (std::size_t n = length(random); n > 0; --n) text += letters[letter(random)];
    EXPECT_LE(read_announcement(text).peers.size(), 65'536U);
  }
}

}  // namespace
}  // namespace bubblesim::capture
