// Names in the order in which people count.
#include "sim/base/natural_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace bubblesim {
namespace {

using Paths = std::vector<std::filesystem::path>;

TEST(NaturalOrder, NumbersInNamesCompareAsNumbers) {
  Paths names{"worker10.json", "worker1.json", "worker2.json", "worker.json", "Worker3.json"};
  std::ranges::sort(names, natural_less);
  EXPECT_EQ(names, (Paths{"Worker3.json", "worker.json", "worker1.json", "worker2.json",
                          "worker10.json"}));
}

TEST(NaturalOrder, NumbersMayHaveAnyLength) {
  EXPECT_TRUE(natural_less("t99999999999999999999998", "t99999999999999999999999"));
  EXPECT_TRUE(natural_less("t99999999999999999999999", "t100000000000000000000000"));
}

TEST(NaturalOrder, LeadingZerosDecideLast) {
  EXPECT_TRUE(natural_less("rank01b", "rank1c"));
  EXPECT_TRUE(natural_less("rank01", "rank1"));
  EXPECT_FALSE(natural_less("rank1", "rank01"));
  EXPECT_FALSE(natural_less("rank1", "rank1"));
}

TEST(NaturalOrder, FoldersCompareBeforeWhatIsInThem) {
  Paths names{"job/rank10/a.json", "job/rank2/b.json", "job/rank2-old/a.json"};
  std::ranges::sort(names, natural_less);
  EXPECT_EQ(names, (Paths{"job/rank2/b.json", "job/rank2-old/a.json", "job/rank10/a.json"}));
}

}  // namespace
}  // namespace bubblesim
