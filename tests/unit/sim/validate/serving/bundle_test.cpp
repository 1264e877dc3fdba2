#include "sim/validate/serving/bundle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/validate/serving/small_bundle.hpp"

namespace bubblesim::validate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

std::string fault_of(const test::SmallBundle& bundle) {
  const auto read = read_serving_bundle(bundle.path());
  return read ? "" : read.error().text();
}

TEST(ServingBundle, HasSettingsLinkAndRequestsByArrival) {
  const test::SmallBundle files;
  const auto bundle = read_serving_bundle(files.path());
  ASSERT_TRUE(bundle) << bundle.error().text();
  EXPECT_EQ(bundle->settings.model, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(bundle->settings.engine, "vLLM 0.19.0");
  EXPECT_EQ(bundle->settings.gpu_label, "RTX4090");
  EXPECT_EQ(bundle->settings.max_num_seqs, 8U);
  EXPECT_EQ(bundle->settings.max_model_len, 4096U);
  EXPECT_FALSE(bundle->settings.num_gpu_blocks);
  EXPECT_DOUBLE_EQ(bundle->settings.layout.link.bandwidth.value, 16e9);
  EXPECT_EQ(bundle->settings.layout.link.latency, Duration{2000});
  ASSERT_EQ(bundle->requests.size(), 2U);
  EXPECT_EQ(bundle->requests[0].id, "a");
  EXPECT_DOUBLE_EQ(bundle->requests[1].first_token, 2.5);
}

TEST(ServingBundle, TakesWhatTheEngineMadeOfItsSettings) {
  const test::SmallBundle files;
  files.put("vllm/meta.json", test::SmallBundle::meta(
      R"(, "kv_cache": {"num_gpu_blocks": 77, "block_size": 32, "enable_prefix_caching": false},
         "hardware": {"device_name": "A GPU"},
         "resolved_config": {"scheduler_config": {"async_scheduling": false},
                             "compilation_config": {"cudagraph_capture_sizes": [8, 1]}})"));
  const auto bundle = read_serving_bundle(files.path() + "/vllm");
  ASSERT_TRUE(bundle) << bundle.error().text();
  EXPECT_EQ(bundle->settings.num_gpu_blocks, 77U);
  EXPECT_EQ(bundle->settings.block_size, 32U);
  EXPECT_EQ(bundle->settings.prefix_caching, false);
  EXPECT_EQ(bundle->settings.async_scheduling, false);
  EXPECT_EQ(bundle->settings.gpu_name, "A GPU");
  EXPECT_THAT(bundle->settings.capture_sizes, Optional(ElementsAre(1, 8)));
}

// A threshold of 0 is none: it stands before the one that was given.
TEST(ServingBundle, WhatTheEngineResolvedStandsBeforeWhatWasGiven) {
  const test::SmallBundle files;
  const std::string given = R"({"model": "m", "engine_kwargs": {"max_num_seqs": 8,
      "max_num_batched_tokens": 512, "max_model_len": 4096, "long_prefill_token_threshold": 128,
      "enable_chunked_prefill": true})";
  files.put("vllm/meta.json", given + "}");
  auto bundle = read_serving_bundle(files.path());
  ASSERT_TRUE(bundle) << bundle.error().text();
  EXPECT_EQ(bundle->settings.long_prefill_token_threshold, 128U);
  EXPECT_EQ(bundle->settings.chunked_prefill, true);
  files.put("vllm/meta.json", given + R"(, "resolved_config": {
      "model_config": {"max_model_len": 2048},
      "scheduler_config": {"long_prefill_token_threshold": 0, "enable_chunked_prefill": false}}})");
  bundle = read_serving_bundle(files.path());
  ASSERT_TRUE(bundle) << bundle.error().text();
  EXPECT_EQ(bundle->settings.max_model_len, 2048U);
  EXPECT_FALSE(bundle->settings.long_prefill_token_threshold);
  EXPECT_EQ(bundle->settings.chunked_prefill, false);
}

TEST(ServingBundle, WithoutGraphsHasNoCaptureSizes) {
  const test::SmallBundle files;
  const auto sizes = [&files](const std::string& more) {
    files.put("vllm/meta.json", test::SmallBundle::meta(more));
    const auto bundle = read_serving_bundle(files.path());
    EXPECT_TRUE(bundle) << bundle.error().text();
    return bundle->settings.capture_sizes;
  };
  EXPECT_FALSE(sizes(""));
  EXPECT_THAT(sizes(R"(, "resolved_config": {"compilation_config":
                         {"cudagraph_capture_sizes": []}})"), Optional(IsEmpty()));
  EXPECT_THAT(sizes(R"(, "resolved_config": {"model_config": {"enforce_eager": true}})"),
              Optional(IsEmpty()));
}

TEST(ServingBundle, SettingsThatNoSimulatedServerHasAreCountedOrRefused) {
  const test::SmallBundle files;
  files.put("vllm/meta.json", test::SmallBundle::meta(
      R"(, "resolved_config": {
             "scheduler_config": {"policy": "priority", "long_prefill_token_threshold": 128,
                                  "enable_chunked_prefill": false},
             "model_config": {"quantization": "fp8"}, "cache_config": {"cache_dtype": "auto"}})"));
  const auto bundle = read_serving_bundle(files.path());
  ASSERT_TRUE(bundle) << bundle.error().text();
  EXPECT_EQ(bundle->settings.long_prefill_token_threshold, 128U);
  EXPECT_EQ(bundle->settings.chunked_prefill, false);
  EXPECT_EQ(bundle->settings.ignored.count("scheduling_policy_ignored"), 1U);
  EXPECT_EQ(bundle->settings.ignored.count("quantization_ignored"), 1U);
  EXPECT_EQ(bundle->settings.ignored.count("kv_cache_dtype_ignored"), 0U);
  files.put("vllm/meta.json", R"({"model": "m", "engine_kwargs": {"max_num_seqs": 8,
      "max_num_batched_tokens": 512, "pipeline_parallel_size": 4}})");
  EXPECT_THAT(fault_of(files), HasSubstr("pipeline_parallel_size: found 4; expected 1"));
}

TEST(ServingBundle, TimesThatCannotBeAreRefused) {
  const test::SmallBundle files;
  files.put("vllm/requests.jsonl", test::request_line("a", 1, 1, 1, 0.5, 2));
  EXPECT_THAT(fault_of(files), HasSubstr("line 1/first_token_ts: found 0.5; expected a time"));
  files.put("vllm/requests.jsonl", test::request_line("a", 1, 1, 1, 2, 1.5));
  EXPECT_THAT(fault_of(files), HasSubstr("line 1/last_token_ts: found 1.5; expected first_token"));
  files.put("vllm/requests.jsonl", test::request_line("a", 1, 1, 1, 2, 2) +
                                       test::request_line("b", 1, 1, 1e11, 2e11, 2e11));
  EXPECT_THAT(fault_of(files), HasSubstr("'b' arrives 99999999999"));
}

TEST(ServingBundle, SharesOfMemoryThatCannotBeAreRefused) {
  const test::SmallBundle files;
  const auto put_share = [&files](const std::string& share) {
    files.put("vllm/meta.json", test::SmallBundle::meta(
        R"(, "kv_cache": {"num_gpu_blocks": null, "gpu_memory_utilization": )" + share + "}"));
  };
  for (const std::string share : {"2", "0", "-0.5"}) {
    put_share(share);
    EXPECT_THAT(fault_of(files), HasSubstr("/kv_cache/gpu_memory_utilization: found " + share +
                                           "; expected a share of the GPU's memory"));
  }
  put_share("1");
  const auto bundle = read_serving_bundle(files.path());
  ASSERT_TRUE(bundle) << bundle.error().text();
  EXPECT_EQ(bundle->settings.memory_utilization, 1.0);
}

TEST(ServingBundle, IsRefusedWithoutSettings) {
  const test::SmallBundle files;
  files.put("vllm/meta.json", R"({"model": "m"})");
  EXPECT_THAT(fault_of(files),
              HasSubstr("/engine_kwargs: is missing; expected the engine's settings"));
  files.put("vllm/meta.json", "[]");
  EXPECT_THAT(fault_of(files), HasSubstr("is no JSON object"));
}

TEST(ServingBundle, NamesTheLineOfARequestWithoutTimes) {
  const test::SmallBundle files;
  files.put("vllm/requests.jsonl",
            test::request_line("a", 1, 1, 1, 2, 2) +
                R"({"request_id": "b", "input_toks": 1, "output_toks": 1, "arrival_time": null})");
  EXPECT_THAT(fault_of(files),
              HasSubstr("line 2/arrival_time: is missing; expected a number"));
}

TEST(ServingBundle, OnSeveralGpusNeedsTheirLink) {
  const test::SmallBundle files;
  files.put("config.json", "{}");
  files.put("vllm/meta.json",
            R"({"model": "m", "engine_kwargs": {"max_num_seqs": 8, "max_num_batched_tokens": 512,
                "tensor_parallel_size": 2}})");
  EXPECT_THAT(fault_of(files), HasSubstr("no link_bw"));
}

}  // namespace
}  // namespace bubblesim::validate
