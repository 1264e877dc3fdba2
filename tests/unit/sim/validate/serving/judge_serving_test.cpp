#include "sim/validate/serving/judge_serving.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/folders.hpp"
#include "tests/unit/sim/validate/serving/small_bundle.hpp"

namespace bubblesim::validate {
namespace {

using ::testing::HasSubstr;

std::string judging_fault(const test::SmallBundle& files) {
  const auto bundle = read_serving_bundle(files.path());
  if (!bundle) return bundle.error().text();
  const auto judged = judge_bundle(*bundle, {kConfigFolder, "vllm-0.19", {}, {}});
  return judged ? "" : judged.error().front().text();
}

TEST(JudgedBundle, HasFifteenFiguresOfBothSides) {
  const test::SmallBundle files;
  const auto bundle = read_serving_bundle(files.path());
  ASSERT_TRUE(bundle);
  const auto judged = judge_bundle(*bundle, {kConfigFolder, "vllm-0.19", {}, {}});
  ASSERT_TRUE(judged) << judged.error().front().text();
  ASSERT_EQ(judged->figures.size(), 15U);
  std::size_t i = 0;
  for (const std::string time : {"ttft", "tpot", "latency"}) {
    for (const std::string which : {"mean", "p50", "p90", "p95", "p99"}) {
      EXPECT_EQ(judged->figures[i].name, time + "_" + which);
      EXPECT_GT(judged->figures[i].simulated, 0) << judged->figures[i].name;
      ++i;
    }
  }
  // Measured: first tokens after 250 ms and 500 ms; one request has further tokens, 2 in 200 ms.
  EXPECT_NEAR(judged->figures[0].measured, 375, 1e-3);
  EXPECT_NEAR(judged->figures[5].measured, 100, 1e-3);
  EXPECT_NEAR(judged->figures[10].measured, (250 + 700) / 2.0, 1e-3);
  EXPECT_EQ(judged->counters.count("kv_cache_size_computed"), 1U);
}

TEST(JudgedBundle, RefusesARequestLongerThanTheWindow) {
  const test::SmallBundle files;
  files.put("vllm/requests.jsonl", test::request_line("long", 4000, 97, 1, 2, 3));
  EXPECT_THAT(judging_fault(files),
              HasSubstr("the request 'long' has 4000 tokens of prompt and 97 of "
                        "output, but the model's window is 4096"));
}

TEST(JudgedBundle, RefusesACacheThatHoldsNotOneRequest) {
  const test::SmallBundle files;
  files.put("vllm/meta.json", test::SmallBundle::meta(R"(, "kv_cache": {"num_gpu_blocks": 5})"));
  EXPECT_THAT(judging_fault(files), HasSubstr("but the whole KV cache holds 64"));
}

TEST(JudgedBundle, RefusesMembersThatHaveNothingToExchange) {
  const test::SmallBundle files;
  files.put("vllm/meta.json", R"({"model": "meta-llama/Llama-3.1-8B", "engine_kwargs":
      {"max_num_seqs": 8, "max_num_batched_tokens": 512, "data_parallel_size": 2}})");
  EXPECT_THAT(judging_fault(files),
              HasSubstr("found data_parallel_size 2 for a model without experts, whose members "
                        "have nothing to exchange; expected 1"));
}

// Without a threshold the prompts take a step each, and two further tokens two more; of at most 128
// tokens a step, the prompt of 300 takes three.
TEST(JudgedBundle, FollowsTheRecordedThresholdOfLongPrompts) {
  const test::SmallBundle files;
  const auto steps = [&files](const std::string& threshold) {
    files.put("vllm/meta.json", test::SmallBundle::meta(
        R"(, "resolved_config": {"scheduler_config": {"long_prefill_token_threshold": )" +
        threshold + R"(}, "compilation_config": {"cudagraph_capture_sizes": []}})"));
    const auto bundle = read_serving_bundle(files.path());
    EXPECT_TRUE(bundle) << bundle.error().text();
    const auto judged = judge_bundle(*bundle, {kConfigFolder, "vllm-0.19", {}, {}});
    EXPECT_TRUE(judged) << judged.error().front().text();
    EXPECT_EQ(judged->counters.count("steps_without_graphs"), 1U);
    return judged->load.steps;
  };
  EXPECT_EQ(steps("0"), 1 + 1 + 2U);
  EXPECT_EQ(steps("128"), 1 + 3 + 2U);
}

TEST(JudgedBundle, NamesTheModelsThatAreKnown) {
  const test::SmallBundle files;
  files.put("vllm/meta.json", R"({"model": "org/unknown", "engine_kwargs":
      {"max_num_seqs": 8, "max_num_batched_tokens": 512}})");
  EXPECT_THAT(judging_fault(files), HasSubstr("no model is published as 'org/unknown'; known: "));
}

}  // namespace
}  // namespace bubblesim::validate
