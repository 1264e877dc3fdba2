// What prompts share, from their token ids. The bundle's blocks hold 16 tokens.
#include "sim/validate/serving/prompt_tokens.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "sim/validate/serving/judge_serving.hpp"
#include "tests/folders.hpp"
#include "tests/unit/sim/validate/serving/small_bundle.hpp"

namespace bubblesim::validate {
namespace {

using ::testing::HasSubstr;

/// A prompt of so many tokens: from `first` on up to token `same`, from a million on after it.
std::string prompt(int tokens, int same, int first = 1) {
  std::vector<int> ids(static_cast<std::size_t>(tokens));
  std::iota(ids.begin(), ids.begin() + same, first);
  std::iota(ids.begin() + same, ids.end(), 1'000'000);
  return fmt::format("{{\"input_tok_ids\": [{}]}}\n", fmt::join(ids, ", "));
}

class PromptTokens : public ::testing::Test {
 protected:
  PromptTokens() {
    files.put("vllm/requests.jsonl", test::request_line("bench-0", 100, 2, 1, 1.5, 1.6) +
                                         test::request_line("bench-1", 300, 2, 3, 3.5, 3.6));
  }

  Result<ServingBundle> read(const std::string& workload) const {
    files.put("workload.jsonl", workload);
    BUBBLESIM_ASSIGN_OR_RETURN(ServingBundle bundle, read_serving_bundle(files.path()));
    BUBBLESIM_RETURN_IF_ERROR(add_prompt_tokens(bundle, files.path() + "/workload.jsonl"));
    return bundle;
  }

  std::string fault(const std::string& workload) const {
    const auto bundle = read(workload);
    return bundle ? "" : bundle.error().text();
  }

  test::SmallBundle files;
};

// 100 tokens fill 6 blocks. Token 41 differs: the first two are shared.
TEST_F(PromptTokens, ABlockIsSharedWithAllBeforeIt) {
  const auto bundle = read(prompt(100, 100) + prompt(300, 40));
  ASSERT_TRUE(bundle) << bundle.error().text();
  const auto& first = bundle->requests[0].shared;
  const auto& second = bundle->requests[1].shared;
  EXPECT_EQ(first.tokens_per_hash, 16U);
  ASSERT_EQ(first.hashes.size(), 6U);
  ASSERT_EQ(second.hashes.size(), 18U);
  EXPECT_EQ(first.hashes[1], second.hashes[1]);
  EXPECT_NE(first.hashes[2], second.hashes[2]);
}

// The last blocks of both prompts hold the same tokens behind others.
TEST_F(PromptTokens, TheSameTokensBehindOthersAreNotShared) {
  const auto bundle = read(prompt(100, 4) + prompt(300, 4, 7));
  ASSERT_TRUE(bundle) << bundle.error().text();
  EXPECT_NE(bundle->requests[0].shared.hashes[1], bundle->requests[1].shared.hashes[1]);
}

// The second prompt begins with the first one's six blocks: 96 tokens are not computed again.
TEST_F(PromptTokens, SharedBlocksAreComputedOnce) {
  const auto shared = read(prompt(100, 100) + prompt(300, 300));
  ASSERT_TRUE(shared) << shared.error().text();
  const auto judged = judge_bundle(*shared, {kConfigFolder, "vllm-0.19", {}, {}});
  ASSERT_TRUE(judged) << judged.error().front().text();
  EXPECT_EQ(judged->load.counts.prefix_hit_tokens, 96U);
  EXPECT_EQ(judged->counters.count("prompts_shared_unknown"), 0U);
}

TEST_F(PromptTokens, ThatAreNotKnownAreSaidToBe) {
  const auto bundle = read_serving_bundle(files.path());
  ASSERT_TRUE(bundle) << bundle.error().text();
  const auto judged = judge_bundle(*bundle, {kConfigFolder, "vllm-0.19", {}, {}});
  ASSERT_TRUE(judged) << judged.error().front().text();
  EXPECT_EQ(judged->load.counts.prefix_hit_tokens, 0U);
  EXPECT_EQ(judged->counters.count("prompts_shared_unknown"), 1U);
}

TEST_F(PromptTokens, OfAnotherWorkloadAreRefused) {
  EXPECT_THAT(fault("{}\n"), HasSubstr("line 1: has no token ids"));
  EXPECT_THAT(fault("{\"input_tok_ids\": [1, -2]}\n"), HasSubstr("line 1: has no token ids"));
  EXPECT_THAT(fault("{\"input_tok_ids\": [4294967296]}\n"), HasSubstr("numbers below 2^32"));
  EXPECT_THAT(fault(prompt(99, 9)), HasSubstr("found 99 tokens; bench-0 was measured with 100"));
  EXPECT_THAT(fault(prompt(100, 9)), HasSubstr("found 1 requests; expected the 2"));
  EXPECT_THAT(fault(prompt(100, 9) + prompt(300, 9) + prompt(5, 5)),
              HasSubstr("line 3: found a request that was not measured"));
}

}  // namespace
}  // namespace bubblesim::validate
