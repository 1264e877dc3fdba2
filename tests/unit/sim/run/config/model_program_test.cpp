// Fillers that are made from a model: what a config says, and what it may not say.
#include <gmock/gmock.h>

#include "tests/unit/sim/run/config/config_text.hpp"

namespace bubblesim::run {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

Json with_program(const std::string& program) {
  Json config = valid_config();
  config["fillers"][0]["program"] = Json::parse(program);
  return config;
}

FillerConfig filler(const std::string& program) {
  const auto config = parse(with_program(program));
  if (config) return config->fillers.front();
  ADD_FAILURE() << config.error().front().text();
  return {};
}

synth::InferenceNames names(const std::string& program) {
  return std::get<synth::InferenceNames>(filler(program).program);
}

Errors faults(const std::string& program) {
  const auto config = parse(with_program(program));
  EXPECT_FALSE(config);
  return config ? Errors{} : config.error();
}

TEST(ModelProgram, OnePassServesItsBatchUnlessTheFillerSaysOtherwise) {
  const FillerConfig read = filler(R"({"model": "bert-base", "batch": 8, "sequence": 128})");
  const auto& made = std::get<synth::InferenceNames>(read.program);
  EXPECT_EQ(made.model, "bert-base");
  EXPECT_EQ(made.sequence, 128U);
  EXPECT_FALSE(made.prompt_tokens);
  EXPECT_EQ(made.software, "pytorch");
  EXPECT_EQ(read.batching.requests_per_pass, 8U);
  EXPECT_EQ(read.batching.max_batch, 8U);
}

TEST(ModelProgram, GenerationHasAPromptAnOutputAndMayBeAGraph) {
  const auto made = names(R"({"model": "llama2-7b", "prompt_tokens": 512, "output_tokens": 64,
                             "decode": "graph", "precision": "bf16", "step_host": "200us"})");
  EXPECT_EQ(made.prompt_tokens, 512U);
  EXPECT_EQ(made.output_tokens, 64U);
  EXPECT_EQ(made.decode, synth::DecodeMode::kGraph);
  EXPECT_EQ(made.precision, model::Precision::kBf16);
  EXPECT_EQ(made.step_host, std::chrono::microseconds{200});
}

// 4 requests of 72 tokens take 5 blocks of 16 each.
TEST(ModelProgram, ContinuousBatchingIsAnEngineWithOrcasRules) {
  const std::string head = R"({"model": "llama2-7b", "batch": 4, "prompt_tokens": 64,
                              "output_tokens": 8, "batching": "continuous")";
  const synth::InferenceNames made = names(head + "}");
  ASSERT_TRUE(made.engine);
  const serving::SchedulerSpec& spec = made.engine->settings.scheduler;
  EXPECT_EQ(spec.reserve, serving::Reserve::kWholeRequest);
  EXPECT_EQ(spec.chunking, serving::Chunking::kWhole);
  EXPECT_EQ(spec.max_num_seqs, 4U);
  EXPECT_EQ(spec.max_model_len, 72U);
  EXPECT_EQ(spec.max_num_batched_tokens, 4U * 64 + 4);
  EXPECT_EQ(std::get<synth::CacheBlocks>(made.engine->settings.cache).blocks, 4U * 5);
  EXPECT_EQ(std::get<Bytes>(names(head + R"(, "kv_cache": "4GB"})").engine->settings.cache),
            Bytes{4'000'000'000});
  const auto& drawn = std::get<workload::DrawnLengths>(*made.engine->requests.lengths);
  EXPECT_EQ(std::get<workload::FixedLength>(drawn.prompt).tokens, 64U);
  EXPECT_EQ(std::get<workload::FixedLength>(drawn.output).tokens, 8U);
}

TEST(ModelProgram, ContinuousBatchingHasNoUseForKeysOfBatches) {
  const auto unused = [](const std::string& batching) {
    Json json = with_program(R"({"model": "llama2-7b", "batch": 4, "prompt_tokens": 64,
                                 "output_tokens": 8, "batching": ")" + batching + "\"}");
    json["fillers"][0]["max_batch"] = 4;
    json["fillers"][0]["requests_per_pass"] = 2;
    const auto config = parse(json);
    EXPECT_TRUE(config) << config.error().front().text();
    return config ? config->fillers[0].unused_batching : std::vector<std::string>{};
  };
  EXPECT_THAT(unused("continuous"), ElementsAre("requests_per_pass", "max_batch"));
  EXPECT_THAT(unused("static"), testing::IsEmpty());
}

TEST(ModelProgram, ATreeIsGivenByDepthAndWidthOrLevelByLevel) {
  const std::string head = R"({"model": "llama2-7b", "prompt_tokens": 8, "output_tokens": 8,
                              "speculation": {"draft": "llama-68m", "acceptance": 0.7, )";
  EXPECT_THAT(names(head + R"("depth": 8, "width": 3}})").speculation->tree.expansion,
              ElementsAre(1, 1, 3, 1, 1, 1, 1, 1));
  EXPECT_THAT(names(head + R"("depth": 2, "width": 3}})").speculation->tree.expansion,
              ElementsAre(1, 3));
  EXPECT_THAT(names(head + R"("depth": 3}})").speculation->tree.expansion, ElementsAre(1, 1, 1));
  EXPECT_THAT(names(head + R"("expansion": [2, 2]}})").speculation->tree.expansion,
              ElementsAre(2, 2));
  EXPECT_THAT(faults(head + R"("expansion": [2], "depth": 1}})").front().text(),
              HasSubstr("beside \"expansion\""));
}

TEST(ModelProgram, KeysOfTheOtherKindOfRequestAreFaults) {
  EXPECT_THAT(faults(R"({"model": "bert-base", "decode": "graph"})").front().text(),
              HasSubstr("/fillers/0/program/decode"));
  EXPECT_THAT(faults(R"({"model": "llama2-7b", "prompt_tokens": 8, "output_tokens": 8,
                        "sequence": 8})")
                  .front()
                  .text(),
              HasSubstr("/fillers/0/program/sequence"));
  EXPECT_THAT(faults(R"({"model": "llama2-7b", "prompt_tokens": 8})").front().text(),
              HasSubstr("output_tokens"));
}

TEST(ModelProgram, AProgramHasOneSource) {
  EXPECT_THAT(faults(R"({"model": "bert-base", "trace": "bert.json"})").front().text(),
              HasSubstr("found both \"trace\" and \"model\"; expected one of them"));
  EXPECT_THAT(faults("{}").front().text(),
              HasSubstr("expected \"trace\", \"kernel_table\", \"model\" or \"train\"; found "
                        "neither"));
}

}  // namespace
}  // namespace bubblesim::run
