// What prompts share is computed once, while its blocks are there; who gives blocks back when they
// run out.
#include <gmock/gmock.h>

#include "sim/serving/block_pool.hpp"
#include "sim/serving/scheduler.hpp"
#include "tests/unit/sim/serving/serving_testing.hpp"

namespace bubblesim::serving {
namespace {

using ::testing::ElementsAre;

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
  play(scheduler, {hashed(1, {10, 11}), "1:p17@0*", hashed(2, {10, 12}),
                   "1:1@17* 2:p9@8*"});  // 10 is two blocks
  EXPECT_EQ(scheduler.counts().prefix_hit_tokens, 8u);
  EXPECT_EQ(scheduler.counts().most_blocks, 5 + 3u);
}

TEST(PrefixCache, BlocksOutliveTheRequestThatFilledThem) {
  Scheduler scheduler(caching_spec());
  play(scheduler, {hashed(1, {10, 11}), "1:p17@0*", "1:1@17*", "-", hashed(2, {10, 11}),
                   "2:p1@16*"});
}

TEST(PrefixCache, TheLastTokenIsAlwaysComputed) {
  Scheduler scheduler(caching_spec());
  Request first = hashed(1, {10, 11});
  first.prompt_tokens = 16;
  Request second = first;
  second.number = 2;
  play(scheduler, {first, "1:p16@0*", "1:1@16*", second, "2:p4@12*"});  // three blocks of four
}

TEST(PrefixCache, ATurnFindsPromptAndOutputOfTheTurnBefore) {
  Scheduler scheduler(caching_spec());
  Request first = make_request(1, 6, 3), second = make_request(2, 6 + 3 + 4, 3);
  first.prefix.conversation = second.prefix.conversation = 5;
  play(scheduler, {first, "1:p6@0*", "1:1@6*", "1:1@7*",  // 8 tokens are cached: two full blocks
                   second, "2:p5@8*"});
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

// Who gives way when blocks run out, and what it costs.

/// Two prompts of 7 tokens with 2 blocks each fill a cache of 4. Both decode their 8th token; the
/// 9th needs a third block.
SchedulerSpec tight_spec() {
  SchedulerSpec spec = small_spec();
  spec.max_num_batched_tokens = 14;
  spec.kv_blocks = 4;
  return spec;
}

void fill(Scheduler& scheduler) {
  play(scheduler, {make_request(1, 7, 6), make_request(2, 7, 6), "1:p7@0* 2:p7@0*",
                   "1:1@7* 2:1@7*"});
}

/// The first request decodes alone until it has its 6 tokens: it had 2.
void finish_first(Scheduler& scheduler) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(do_step(scheduler), "1:1@" + std::to_string(8 + i) + "*");
}

TEST(SchedulerPreemption, TheNewestGivesWayAndComputesPromptAndOutputAgain) {
  Scheduler scheduler(tight_spec());
  fill(scheduler);
  const ScheduledStep* step = scheduler.next_step(kSimStart);
  EXPECT_EQ(text_of(step), "1:1@8*");
  EXPECT_THAT(step->preempted, ElementsAre(2u));
  scheduler.finish_step(kSimStart);
  play(scheduler, {"1:1@9*", "1:1@10*", "1:1@11*",
                   "2:p9@0*",  // 7 and the 2 that it had; it samples the third
                   "2:1@9*"});
  EXPECT_EQ(scheduler.counts().preemptions, 1u);
  EXPECT_EQ(scheduler.counts().recomputed_tokens, 8u);
  EXPECT_EQ(scheduler.counts().most_blocks, 4u);
}

TEST(SchedulerPreemption, TheVictimGoesBeforeThoseThatWait) {
  Scheduler scheduler(tight_spec());
  fill(scheduler);
  scheduler.arrive(make_request(3, 1, 1));
  finish_first(scheduler);                     // 3 has room, but 2 is before it and has none
  EXPECT_EQ(do_step(scheduler), "2:p9@0* 3:p1@0*");
}

TEST(SchedulerPreemption, ByPriorityTheVictimGoesToItsPlaceAmongThoseThatWait) {
  for (const auto& [priority, next] : {std::pair{0, "2:p9@0* 3:p1@0*"}, {-1, "2:p9@0*"}}) {
    SchedulerSpec spec = tight_spec();
    spec.order = Order::kPriority;
    Scheduler scheduler(spec);
    fill(scheduler);
    Request late = make_request(3, 1, 1);
    late.priority = priority;
    scheduler.arrive(late);
    EXPECT_EQ(do_step(scheduler), "1:1@8*");   // it takes a third block of 4; 2 gives way
    // As urgent as 2 and later than it, 3 waits behind it; more urgent, it takes the fourth block.
    EXPECT_EQ(do_step(scheduler), priority == 0 ? "1:1@9*" : "1:1@9* 3:p1@0*");
    do_step(scheduler);
    do_step(scheduler);                        // 1 has its 6 tokens
    EXPECT_EQ(do_step(scheduler), next);
  }
}

TEST(SchedulerPreemption, ThePrefixCacheGivesBackTheBlocksThatNobodyTook) {
  SchedulerSpec spec = tight_spec();
  spec.enable_prefix_caching = true;
  Scheduler scheduler(spec);
  fill(scheduler);
  finish_first(scheduler);                     // took one block, the victim's last
  EXPECT_EQ(do_step(scheduler), "2:p5@4*");
  EXPECT_EQ(scheduler.counts().recomputed_tokens, 4u);
  EXPECT_EQ(scheduler.counts().prefix_hit_tokens, 0u);
}

/// As tight_spec, with swaps and room for them.
SchedulerSpec swapping_spec() {
  SchedulerSpec spec = tight_spec();
  spec.preemption = CachePreemption::kSwap;
  spec.host_blocks = 8;
  return spec;
}

TEST(SchedulerPreemption, SwappedSequencesGoOnWhereTheyStopped) {
  Scheduler scheduler(swapping_spec());
  fill(scheduler);
  const ScheduledStep* step = scheduler.next_step(kSimStart);
  EXPECT_EQ(step->blocks_swapped_out, 2u);
  scheduler.finish_step(kSimStart);
  for (int i = 1; i < 4; ++i) do_step(scheduler);
  step = scheduler.next_step(kSimStart);
  EXPECT_EQ(text_of(step), "2:1@8*");
  EXPECT_EQ(step->blocks_swapped_in, 2u);
  EXPECT_EQ(scheduler.counts().recomputed_tokens, 0u);
}

TEST(SchedulerPreemption, ASwapIsCopiedInGroupsOfBlocks) {
  for (const auto& [group, copies] : {std::pair{0U, 0U}, {1U, 2U}, {2U, 1U}, {5U, 1U}}) {
    SchedulerSpec spec = swapping_spec();
    spec.swap_group = group;
    Scheduler scheduler(spec);
    fill(scheduler);
    const ScheduledStep* step = scheduler.next_step(kSimStart);
    EXPECT_EQ(step->blocks_swapped_out, 2u);
    EXPECT_EQ(step->swap_copies, copies) << group;
  }
}

TEST(SchedulerPreemption, BesideAStepASequenceComesBackForTheNext) {
  SchedulerSpec spec = swapping_spec();
  spec.swap_timing = SwapTiming::kBeside;
  spec.kv_blocks = 5;
  spec.max_num_seqs = 3;
  Scheduler scheduler(spec);
  fill(scheduler);
  // Of five blocks each has two and the first takes the fifth; the second gives way.
  const ScheduledStep* step = scheduler.next_step(kSimStart);
  EXPECT_EQ(text_of(step), "1:1@8*");
  EXPECT_EQ(step->blocks_swapped_out, 2u);
  scheduler.finish_step(kSimStart);
  for (int i = 1; i < 4; ++i) do_step(scheduler);  // the first ends: five blocks are free
  // Nobody else runs: it is waited for.
  step = scheduler.next_step(kSimStart);
  EXPECT_EQ(text_of(step), "2:1@8*");
  EXPECT_TRUE(step->awaits_swaps);
}

TEST(SchedulerPreemption, BesideAStepOthersAreComputedMeanwhile) {
  SchedulerSpec spec = swapping_spec();
  spec.swap_timing = SwapTiming::kBeside;
  spec.max_num_seqs = 3;
  Scheduler scheduler(spec);
  fill(scheduler);
  do_step(scheduler);                          // the second gives way; the first has three blocks
  for (int i = 1; i < 3; ++i) do_step(scheduler);
  EXPECT_EQ(do_step(scheduler), "1:1@11*");    // its last
  scheduler.arrive(make_request(3, 2, 2));     // one block
  // The second comes back with two blocks and would need a third; it takes no part yet.
  const ScheduledStep* step = scheduler.next_step(kSimStart);
  EXPECT_EQ(text_of(step), "3:p2@0*");
  EXPECT_EQ(step->blocks_swapped_in, 2u);
  EXPECT_FALSE(step->awaits_swaps);
  scheduler.finish_step(kSimStart);
  EXPECT_EQ(do_step(scheduler), "2:1@8* 3:1@2*");
}

TEST(SchedulerPreemption, WhatTheHostHasIsNotCopiedOutAgain) {
  SchedulerSpec spec = swapping_spec();
  spec.swap_reuse = true;
  spec.order = Order::kPriority;
  Scheduler scheduler(spec);
  Request low = make_request(1, 7, 9);
  low.priority = 1;
  play(scheduler, {low, "1:p7@0*", make_request(2, 8, 2), "1:1@7* 2:p8@0*",
                   "2:1@8*",  // the first gives way for itself: two blocks
                   "1:1@8*"});  // back, and its full blocks stay on the host
  EXPECT_EQ(scheduler.host_blocks_used(), 2u);
  play(scheduler, {make_request(3, 1, 8), "1:1@9* 3:p1@0*", "1:1@10* 3:1@1*", "1:1@11* 3:1@2*",
                   "3:1@3*"});  // three blocks, of which the host has two
  EXPECT_EQ(scheduler.counts().blocks_swapped_out, 2u + 1u);
  EXPECT_EQ(scheduler.host_blocks_used(), 3u);
}

// Two of three requests fit. Whenever priorities change, the two most urgent run.
TEST(SchedulerPreemption, PrioritiesThatChangeTakeTurns) {
  SchedulerSpec spec = swapping_spec();
  spec.order = Order::kPriority;
  spec.priority_period = 2;
  spec.host_blocks = 100;
  Scheduler scheduler(spec);
  for (std::uint64_t number = 1; number <= 3; ++number) {
    scheduler.arrive(make_request(number, 4, 3));
  }
  std::string steps;
  for (std::string step = do_step(scheduler); step != "-"; step = do_step(scheduler)) {
    steps += step + "; ";
  }
  EXPECT_EQ(scheduler.counts().finished, 3u);
  EXPECT_GT(scheduler.counts().preemptions, 0u) << steps;
  EXPECT_EQ(scheduler.counts().recomputed_tokens, 0u);
  spec.order = Order::kFirstCome;
  EXPECT_FALSE(check(spec));
}

TEST(SchedulerPreemption, SettingsOfSwapsNeedSwaps) {
  SchedulerSpec spec = tight_spec();
  spec.swap_reuse = true;
  EXPECT_FALSE(check(spec));
  spec.preemption = CachePreemption::kSwap;
  EXPECT_TRUE(check(spec));
}

TEST(SchedulerPreemption, WithoutRoomOnTheHostItIsRecomputedAndCounted) {
  SchedulerSpec spec = swapping_spec();
  spec.host_blocks = 1;
  Scheduler scheduler(spec);
  fill(scheduler);
  finish_first(scheduler);
  EXPECT_EQ(do_step(scheduler), "2:p9@0*");
  EXPECT_EQ(scheduler.counts().swaps_without_room, 1u);
}

TEST(SchedulerPreemption, TheLeastUrgentGivesWayEvenIfTheStepHadItAlready) {
  SchedulerSpec spec = tight_spec();
  spec.order = Order::kPriority;
  Scheduler scheduler(spec);
  Request low = make_request(1, 7, 6);
  low.priority = 1;
  play(scheduler, {low, "1:p7@0*", make_request(2, 8, 4), "1:1@7* 2:p8@0*"});
  // Both want a third block; the cache has none. The first gives way for itself, being the least
  // urgent, which ends the attempt; the next one has room for the second.
  EXPECT_EQ(do_step(scheduler), "2:1@8*");
  EXPECT_EQ(scheduler.counts().recomputed_tokens, 0u);  // not yet: it waits
  play(scheduler, {"2:1@9*", "2:1@10*", "1:p9@0*"});
  EXPECT_EQ(scheduler.counts().recomputed_tokens, 8u);
}

TEST(SchedulerPreemption, AVictimThatTheStepHadGivesItsTokensBack) {
  SchedulerSpec spec = tight_spec();
  spec.order = Order::kPriority;
  Scheduler scheduler(spec);
  Request low = make_request(1, 6, 6);
  low.priority = 1;
  // The first has room for its 8th token and is scheduled; the second needs a third block.
  play(scheduler, {low, "1:p6@0*", make_request(2, 8, 2), "1:1@6* 2:p8@0*", "2:1@8*"});
  EXPECT_EQ(scheduler.counts().computed_tokens, 6 + (1 + 8) + 1u);
  EXPECT_EQ(do_step(scheduler), "1:p8@0*");  // 6 and 2 that it had received
  EXPECT_EQ(scheduler.counts().recomputed_tokens, 7u);
}

}  // namespace
}  // namespace bubblesim::serving
