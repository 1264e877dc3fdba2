// Servers of a language-model engine: what a config says, and what it may not say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/run/config/config_text.hpp"

namespace bubblesim::run {
namespace {

using ::testing::HasSubstr;

Json server(const std::string& engine, const std::string& requests = R"(
              {"prompt_tokens": 512, "output_tokens": 64})") {
  Json config = valid_config();
  Json& filler = config["fillers"][1];
  filler["program"] = {{"model", "llama2-7b"},
                       {"decode", "graph"},
                       {"engine", Json::parse(engine)}};
  if (!requests.empty()) filler["program"]["requests"] = Json::parse(requests);
  return config;
}

FillerConfig read(const Json& config) {
  const auto run = parse(config);
  if (run) return run->fillers[1];
  ADD_FAILURE() << run.error().front().text();
  return {};
}

const synth::EngineNames& engine(const FillerConfig& filler) {
  return *std::get<synth::InferenceNames>(filler.program).engine;
}

std::string fault(const Json& config) {
  const auto run = parse(config);
  EXPECT_FALSE(run);
  return run ? "" : run.error().front().text();
}

TEST(EngineProgram, WithoutMoreItIsVllmsScheduler) {
  const FillerConfig filler = read(server(R"({"max_model_len": 4096, "kv_blocks": 100})"));
  const serving::SchedulerSpec& spec = engine(filler).settings.scheduler;
  EXPECT_EQ(spec.max_num_batched_tokens, 2048U);
  EXPECT_EQ(spec.max_num_seqs, 256U);
  EXPECT_EQ(spec.pacing, serving::Pacing::kOneAhead);
  EXPECT_TRUE(spec.enable_prefix_caching);
  EXPECT_EQ(std::get<synth::CacheBlocks>(engine(filler).settings.cache).blocks, 100U);
}

TEST(EngineProgram, RulesAreStartedFromAndEverySettingMayDiffer) {
  const FillerConfig filler = read(server(
      R"({"rules": "orca", "max_model_len": 2048, "kv_cache": "4GB", "order": "priority",
          "preemption": "swap", "host_cache": "8GB", "prefix_caching": true})"));
  const synth::EngineSettings& settings = engine(filler).settings;
  EXPECT_EQ(settings.scheduler.chunking, serving::Chunking::kWhole);
  EXPECT_EQ(settings.scheduler.reserve, serving::Reserve::kWholeRequest);
  EXPECT_EQ(settings.scheduler.order, serving::Order::kPriority);
  EXPECT_EQ(settings.scheduler.preemption, serving::Preemption::kSwap);
  EXPECT_EQ(std::get<Bytes>(settings.cache).value, 4'000'000'000U);
  EXPECT_EQ(settings.host_cache.value, 8'000'000'000U);
}

TEST(EngineProgram, LengthsAreFixedDrawnOrOfAFile) {
  const std::string engine_text = R"({"max_model_len": 4096, "kv_blocks": 100})";
  const auto drawn = read(server(engine_text, R"({"output_tokens": 7, "prompt_tokens":
      {"distribution": "lognormal", "mean": 300, "cv": 0.5, "most": 1000}})"));
  const auto& lengths = std::get<workload::DrawnLengths>(*engine(drawn).requests.lengths);
  EXPECT_EQ(std::get<workload::LognormalLength>(lengths.prompt).mean, 300);
  EXPECT_EQ(workload::longest(lengths.prompt), 1000U);
  EXPECT_EQ(workload::longest(lengths.output), 7U);
  const auto listed = read(server(engine_text, R"({"path": "/data/conv.csv", "format": "azure",
                                                   "pick": "at_random"})"));
  const auto& file = std::get<synth::RequestNames::File>(*engine(listed).requests.lengths);
  EXPECT_EQ(file.path, "/data/conv.csv");
  EXPECT_EQ(file.pick, workload::ListedLengths::Pick::kAtRandom);
}

TEST(EngineProgram, ServiceLimitsAreTheFillers) {
  Json config = server(R"({"max_model_len": 4096, "kv_blocks": 100})");
  config["fillers"][1]["slo"] = {{"ttft", "500ms"}, {"tpot", "50ms"}};
  const FillerConfig filler = read(config);
  ASSERT_TRUE(filler.limits);
  EXPECT_EQ(filler.limits->ttft, std::chrono::milliseconds{500});
  EXPECT_EQ(filler.limits->tpot, std::chrono::milliseconds{50});
  EXPECT_FALSE(filler.limits->latency);
  Json other = valid_config();
  other["fillers"][1]["slo"] = {{"ttft", "500ms"}};
  EXPECT_THAT(fault(other), HasSubstr("only a program with \"engine\" has tokens"));
}

TEST(EngineProgram, FaultsAreNamed) {
  EXPECT_THAT(fault(server(R"({"max_model_len": 4096})")), HasSubstr("kv_blocks"));
  EXPECT_THAT(fault(server(R"({"kv_blocks": 4})")), HasSubstr("max_model_len"));
  EXPECT_THAT(fault(server(R"({"max_model_len": 4096, "kv_blocks": 1,
                               "mixing": "prompts_apart"})")),
              HasSubstr("expected whole prompts"));
  EXPECT_THAT(fault(server(R"({"max_model_len": 4096, "kv_blocks": 1, "rules": "vlm"})")),
              HasSubstr("vllm"));
  EXPECT_THAT(fault(server(R"({"max_model_len": 4096, "kv_blocks": 1})", "")),
              HasSubstr("found no \"requests\""));
  Json batched = server(R"({"max_model_len": 4096, "kv_blocks": 1})");
  batched["fillers"][1]["program"]["batch"] = 8;
  EXPECT_THAT(fault(batched), HasSubstr("an engine's requests are in \"requests\""));
  Json waits = server(R"({"max_model_len": 4096, "kv_blocks": 1})");
  waits["fillers"][1]["max_wait"] = "1ms";
  EXPECT_THAT(fault(waits), HasSubstr("an engine forms its own batches"));
}

}  // namespace
}  // namespace bubblesim::run
