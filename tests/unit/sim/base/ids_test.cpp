// Strong identifiers.
#include "sim/base/ids.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace bubblesim {
namespace {

static_assert(!std::is_convertible_v<GpuId, RankId>, "kinds of id do not mix");
static_assert(!std::is_convertible_v<int, GpuId>, "a number is not an id");
static_assert(sizeof(GpuId) == 4);

TEST(Ids, AreOrderedByIndex) {
  EXPECT_LT(GpuId{1}, GpuId{2});
  EXPECT_EQ(GpuId{3}, GpuId{3});
  EXPECT_EQ(GpuId{7}.index(), 7U);
  EXPECT_EQ(GpuId{}, GpuId{0});
}

TEST(Ids, CanBeHashed) {
  const std::unordered_set<StreamId> set{StreamId{1}, StreamId{2}, StreamId{1}};
  EXPECT_EQ(set.size(), 2U);
}

}  // namespace
}  // namespace bubblesim
