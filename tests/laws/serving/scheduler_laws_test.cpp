// For all settings and all loads: tokens are conserved, cache and budget are never exceeded, and
// every request that was taken ends with all of its tokens.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>

#include "tests/laws/serving/random_server.hpp"

namespace bubblesim::serving {
namespace {

constexpr std::uint64_t kSeeds = 150;

/// Settings drawn from all that check() allows, with caches of a few requests.
SchedulerSpec random_spec(std::uint64_t seed) {
  RandomStream random(seed, "settings");
  const auto below = [&](int most) { return static_cast<int>(random.uniform() * most); };
  SchedulerSpec spec;
  spec.max_model_len = 110;
  spec.block_size = 1 + static_cast<std::uint32_t>(below(16));
  spec.kv_blocks = (100 + static_cast<std::uint32_t>(below(200))) / spec.block_size + 1;
  spec.max_num_seqs = 1 + static_cast<std::uint32_t>(below(12));
  spec.max_num_batched_tokens = 100 + static_cast<std::uint32_t>(below(100));
  spec.host_blocks = static_cast<std::uint32_t>(below(20));
  spec.watermark = below(2) * 0.05;
  spec.enable_prefix_caching = below(2) == 0;
  spec.prefix_hit_rate = below(2) * 0.3;
  spec.order = static_cast<Order>(below(2));
  spec.mixing = static_cast<Mixing>(below(2));
  spec.chunking = static_cast<Chunking>(below(2));
  spec.reserve = static_cast<Reserve>(below(3));
  if (spec.reserve == Reserve::kWholeRequest) spec.watermark = 0;
  spec.preemption = static_cast<CachePreemption>(below(2));
  spec.pacing = static_cast<Pacing>(below(2));
  spec.output_end = static_cast<OutputEnd>(below(2));
  if (spec.mixing == Mixing::kPromptsApart) spec.chunking = Chunking::kWhole;
  if (spec.chunking == Chunking::kChunks) {
    spec.max_num_batched_tokens = 1 + static_cast<std::uint32_t>(below(60));
    spec.long_prefill_token_threshold = static_cast<std::uint32_t>(below(2) * below(30));
  }
  if (spec.pacing == Pacing::kSynchronous && below(2) == 0) {
    spec.speculation = {3, independent_acceptance(3, 0.6)};
    spec.seed = seed;
  }
  if (spec.preemption == CachePreemption::kSwap) {
    if (spec.order == Order::kPriority && spec.reserve != Reserve::kWholeRequest && below(2) == 0) {
      spec.priority_period = 7;
      spec.host_blocks = 20'000;
    }
    spec.swap_timing = static_cast<SwapTiming>(below(2));
    spec.swap_group = static_cast<std::uint32_t>(below(4));
    spec.swap_reuse = below(2) == 0;
  }
  return spec;
}

RandomLoad random_load(std::uint64_t seed) {
  RandomLoad load;
  load.seed = seed;
  load.conversations = seed % 3 == 0 ? 5 : 0;
  load.handed = seed % 4 == 1;
  return load;
}

void for_all(const std::function<void(const SchedulerSpec&, const ServerLog&)>& law) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const SchedulerSpec spec = random_spec(seed);
    ASSERT_TRUE(check(spec)) << check(spec).error().message;
    law(spec, serve_random(spec, random_load(seed)));
  }
}

TEST(SchedulerLaws, EveryRequestThatWasTakenEndsOnceWithAllOfItsTokens) {
  std::uint64_t preemptions = 0;
  for_all([&](const SchedulerSpec&, const ServerLog& log) {
    EXPECT_EQ(log.queued.size() + log.refused.size(), 200u);
    std::set<std::uint64_t> ended;
    std::uint64_t tokens = 0;
    for (const Request& request : log.queued) tokens -= request.handed ? 1 : 0;
    for (const FinishedRequest& request : log.finished) {
      EXPECT_TRUE(ended.insert(request.number).second);
      EXPECT_LE(request.arrival, request.admitted);
      EXPECT_LT(request.admitted, request.last_token);
      EXPECT_LE(request.first_token, request.last_token);
      tokens += request.output_tokens;
    }
    EXPECT_EQ(ended.size(), log.queued.size());
    EXPECT_EQ(tokens, log.counts.output_tokens);
    preemptions += log.counts.preemptions;
  });
  EXPECT_GT(preemptions, 500u) << "the caches are too large to test anything";
}

TEST(SchedulerLaws, TokensAreConserved) {
  for_all([](const SchedulerSpec&, const ServerLog& log) {
    std::uint64_t needed = 0;
    for (const Request& request : log.queued) {
      needed += request.prompt_tokens + request.output_tokens - 1;
    }
    std::uint64_t computed = 0;
    for (const ScheduledStep& step : log.steps) {
      for (const StepSequence& part : step.sequences) computed += part.new_tokens;
    }
    EXPECT_EQ(computed, log.counts.computed_tokens);
    EXPECT_EQ(computed + log.counts.prefix_hit_tokens + log.counts.handed_tokens,
              needed + log.counts.recomputed_tokens + log.counts.dropped_tokens +
                  log.counts.rejected_tokens);
  });
}

TEST(SchedulerLaws, StepsKeepTheBudgetTheSequencesAndTheCache) {
  for_all([](const SchedulerSpec& spec, const ServerLog& log) {
    for (const ScheduledStep& step : log.steps) {
      EXPECT_LE(step.totals.tokens(), spec.max_num_batched_tokens);
      EXPECT_LE(step.sequences.size(), spec.max_num_seqs);
      StepTotals sums;
      std::set<std::uint64_t> requests;
      for (const StepSequence& part : step.sequences) {
        EXPECT_TRUE(requests.insert(part.request).second);
        EXPECT_GE(part.new_tokens, 1u);
        EXPECT_LT(part.context + part.new_tokens, spec.max_model_len + 1);
        EXPECT_TRUE(part.prefill || part.new_tokens == 1 + part.drafted);
        sums.add(part);
      }
      EXPECT_EQ(sums, step.totals);
    }
    EXPECT_LE(log.counts.most_blocks, spec.kv_blocks);
    EXPECT_EQ(log.blocks.back(), 0u);
    for (const std::uint32_t blocks : log.host_blocks) EXPECT_LE(blocks, spec.host_blocks);
    EXPECT_EQ(log.host_blocks.back(), 0u);
  });
}

TEST(SchedulerLaws, ASequenceIsComputedInOrderAndGoesBackOnlyWhenItWasPreempted) {
  for_all([](const SchedulerSpec&, const ServerLog& log) {
    std::map<std::uint64_t, std::uint64_t> computed;
    std::map<std::uint64_t, std::uint64_t> drafted;  // of which all may have been rejected
    std::set<std::uint64_t> known;
    for (const ScheduledStep& step : log.steps) {
      for (const std::uint64_t request : step.preempted) known.erase(request);
      for (const StepSequence& part : step.sequences) {
        const bool goes_on = !known.insert(part.request).second;
        std::uint64_t& so_far = computed[part.request];
        EXPECT_TRUE(!goes_on || (part.context <= so_far &&
                                 part.context + drafted[part.request] >= so_far));
        so_far = part.context + part.new_tokens;
        drafted[part.request] = part.drafted;
      }
    }
  });
}

TEST(SchedulerLaws, NobodyIsPreemptedWhereWholeRequestsAreReservedOrTheCacheHoldsAll) {
  for_all([](const SchedulerSpec& spec, const ServerLog& log) {
    EXPECT_TRUE(spec.reserve != Reserve::kWholeRequest || log.counts.preemptions == 0);
    EXPECT_TRUE(log.counts.preemptions > 0 || log.counts.recomputed_tokens == 0);
  });
  SchedulerSpec spec;
  spec.kv_blocks = 10'000;
  EXPECT_EQ(serve_random(spec, {}).counts.preemptions, 0u);
}

}  // namespace
}  // namespace bubblesim::serving
