// What prompts share is computed once, while its blocks are there.
#include <gmock/gmock.h>

#include "sim/serving/block_pool.hpp"
#include "sim/serving/scheduler.hpp"
#include "tests/unit/sim/serving/serving_testing.hpp"

namespace bubblesim::serving {
namespace {

SchedulerSpec caching_spec() {
  SchedulerSpec spec = small_spec();
  spec.max_num_batched_tokens = 64;
  spec.enable_prefix_caching = true;
  return spec;
}

/// Two hashes of 8 tokens: four blocks.
Request hashed(std::uint64_t number, std::vector<std::uint64_t> hashes) {
  Request request = make_request(number, 17, 2);
  request.prefix.hashes = std::move(hashes);
  request.prefix.tokens_per_hash = 8;
  return request;
}

TEST(PrefixCache, RequestsWithTheSameHashesShareBlocksWhileTheyRun) {
  Scheduler scheduler(caching_spec());
  scheduler.arrive(hashed(1, {10, 11}));
  EXPECT_EQ(do_step(scheduler), "1:p17@0*");
  scheduler.arrive(hashed(2, {10, 12}));
  EXPECT_EQ(do_step(scheduler), "1:1@17* 2:p9@8*");  // 10 is two blocks
  EXPECT_EQ(scheduler.counts().prefix_hit_tokens, 8u);
  EXPECT_EQ(scheduler.counts().most_blocks, 5 + 3u);
}

TEST(PrefixCache, BlocksOutliveTheRequestThatFilledThem) {
  Scheduler scheduler(caching_spec());
  scheduler.arrive(hashed(1, {10, 11}));
  do_step(scheduler);
  do_step(scheduler);
  ASSERT_TRUE(scheduler.is_idle());
  scheduler.arrive(hashed(2, {10, 11}));
  EXPECT_EQ(do_step(scheduler), "2:p1@16*");
}

TEST(PrefixCache, TheLastTokenIsAlwaysComputed) {
  Scheduler scheduler(caching_spec());
  Request request = hashed(1, {10, 11});
  request.prompt_tokens = 16;
  scheduler.arrive(request);
  do_step(scheduler);
  do_step(scheduler);
  request.number = 2;
  scheduler.arrive(request);
  EXPECT_EQ(do_step(scheduler), "2:p4@12*");  // three blocks of four
}

TEST(PrefixCache, ATurnFindsPromptAndOutputOfTheTurnBefore) {
  Scheduler scheduler(caching_spec());
  Request turn = make_request(1, 6, 3);
  turn.prefix.conversation = 5;
  scheduler.arrive(turn);
  EXPECT_EQ(do_step(scheduler), "1:p6@0*");
  EXPECT_EQ(do_step(scheduler), "1:1@6*");
  EXPECT_EQ(do_step(scheduler), "1:1@7*");    // 8 tokens are cached: two full blocks
  turn.number = 2;
  turn.prompt_tokens = 6 + 3 + 4;
  scheduler.arrive(turn);
  EXPECT_EQ(do_step(scheduler), "2:p5@8*");
}

TEST(PrefixCache, AGivenRateCountsInWholeBlocksAndOnceARequest) {
  SchedulerSpec spec = small_spec();
  spec.prefix_hit_rate = 0.6;
  Scheduler scheduler(spec);
  scheduler.arrive(make_request(1, 10, 1));
  EXPECT_EQ(do_step(scheduler), "1:p6@4*");   // 6 of 10: one block
  EXPECT_EQ(scheduler.counts().prefix_hit_tokens, 4u);
}

// A request that says what it shares has what the cache holds: nothing.
TEST(PrefixCache, AGivenRateIsNotOfRequestsThatSayWhatTheyShare) {
  SchedulerSpec spec = caching_spec();
  spec.prefix_hit_rate = 0.6;
  Scheduler scheduler(spec);
  scheduler.arrive(hashed(1, {10, 11}));
  EXPECT_EQ(do_step(scheduler), "1:p17@0*");
  EXPECT_EQ(scheduler.counts().prefix_hit_tokens, 0u);
}

TEST(PrefixCache, KeysTellRequestsConversationsAndHashesApart) {
  Request own = make_request(1, 32, 1);
  Request turn = own;
  turn.prefix.conversation = 1;
  Request shared = own;
  shared.prefix.hashes = {1};
  shared.prefix.tokens_per_hash = 8;
  EXPECT_NE(block_key(own, 1, 0, 4), block_key(turn, 1, 0, 4));
  EXPECT_NE(block_key(own, 1, 0, 4), block_key(shared, 1, 0, 4));
  EXPECT_NE(block_key(own, 1, 0, 4), block_key(own, 2, 0, 4));
  EXPECT_NE(block_key(shared, 1, 0, 4), block_key(shared, 1, 1, 4));
  EXPECT_EQ(block_key(shared, 1, 1, 4), block_key(shared, 2, 1, 4));
  EXPECT_NE(block_key(shared, 1, 2, 4), block_key(shared, 2, 2, 4));  // beyond its hash
}

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
