#include "sim/serving/block_pool.hpp"

#include <gtest/gtest.h>

namespace bubblesim::serving {
namespace {

TEST(BlockPool, TakesBlocksInTheOrderInWhichTheyWereFreed) {
  BlockPool pool(3);
  const BlockIndex a = pool.take();
  const BlockIndex b = pool.take();
  const BlockIndex c = pool.take();
  EXPECT_EQ(pool.free(), 0u);
  pool.release({b});
  pool.release({a, c});  // the last of a sequence first: c, then a
  EXPECT_EQ(pool.take(), b);
  EXPECT_EQ(pool.take(), c);
  EXPECT_EQ(pool.take(), a);
}

TEST(BlockPool, AFreedBlockIsKnownUntilItIsTaken) {
  BlockPool pool(1);
  const BlockIndex block = pool.take();
  pool.remember(block, 42);
  pool.release({block});
  EXPECT_EQ(pool.find(42), block);
  EXPECT_TRUE(pool.is_free(block));
  EXPECT_EQ(pool.take(), block);
  EXPECT_FALSE(pool.find(42));
}

TEST(BlockPool, ASharedBlockIsFreeWhenItsLastHolderLeaves) {
  BlockPool pool(2);
  const BlockIndex block = pool.take();
  pool.share(block);
  pool.release({block});
  EXPECT_EQ(pool.used(), 1u);
  pool.release({block});
  EXPECT_EQ(pool.used(), 0u);
  pool.share(block);  // from the free ones
  EXPECT_EQ(pool.used(), 1u);
}

TEST(BlockPool, TheFirstBlockOfAContentIsItsBlock) {
  BlockPool pool(2);
  const BlockIndex first = pool.take();
  const BlockIndex second = pool.take();
  pool.remember(first, 7);
  pool.remember(second, 7);
  EXPECT_EQ(pool.find(7), first);
  pool.release({second});
  EXPECT_EQ(pool.take(), second);
  EXPECT_EQ(pool.find(7), first);
}

}  // namespace
}  // namespace bubblesim::serving
