// Fillers that are made from a model: what a config says, and what it may not say.
#include <gmock/gmock.h>

#include "tests/fault.hpp"
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
  return must(parse(with_program(program))).fillers.front();
}

synth::InferenceNames names(const std::string& program) {
  return std::get<synth::InferenceNames>(filler(program).program);
}

std::string fault(const Json& config) {
  return error_of(parse(config)).front().text();
}

std::string fault_of_program(const std::string& program) { return fault(with_program(program)); }

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
    return must(parse(json)).fillers[0].unused_batching;
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
  EXPECT_THAT(fault_of_program(head + R"("expansion": [2], "depth": 1}})"),
              HasSubstr("beside \"expansion\""));
}

TEST(ModelProgram, KeysOfTheOtherKindOfRequestAreFaults) {
  EXPECT_THAT(fault_of_program(R"({"model": "bert-base", "decode": "graph"})"),
              HasSubstr("/fillers/0/program/decode"));
  EXPECT_THAT(fault_of_program(R"({"model": "llama2-7b", "prompt_tokens": 8, "output_tokens": 8,
                                  "sequence": 8})"),
              HasSubstr("/fillers/0/program/sequence"));
  EXPECT_THAT(fault_of_program(R"({"model": "llama2-7b", "prompt_tokens": 8})"),
              HasSubstr("output_tokens"));
}

TEST(ModelProgram, AProgramHasOneSource) {
  EXPECT_THAT(fault_of_program(R"({"model": "bert-base", "trace": "bert.json"})"),
              HasSubstr("found both \"trace\" and \"model\"; expected one of them"));
  EXPECT_THAT(fault_of_program("{}"),
              HasSubstr("expected \"trace\", \"kernel_table\", \"model\" or \"train\"; found "
                        "neither"));
}

// Servers of a language-model engine: what a config says, and what it may not say.
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

FillerConfig read(const Json& config) { return must(parse(config)).fillers[1]; }

const synth::EngineNames& engine(const FillerConfig& filler) {
  return *std::get<synth::InferenceNames>(filler.program).engine;
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
  EXPECT_EQ(settings.scheduler.preemption, serving::CachePreemption::kSwap);
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

TEST(EngineProgram, SwapsAndPrefillApartAreSettings) {
  const std::string engine_text = R"({"max_model_len": 4096, "kv_blocks": 100,
      "preemption": "swap", "host_cache": "8GB", "swap_group": 20, "swap_timing": "beside",
      "swap_reuse": true, "prefill": {"gpus": 1, "link": "25GB/s", "write": "5us",
                                      "writes": "blocks"}})";
  Json config = server(engine_text);
  config["fillers"][1]["mode"] = "online";
  config["fillers"][1]["arrivals"] = {{"process", "poisson"}, {"rate_per_s", 1}};
  const synth::EngineSettings settings = engine(read(config)).settings;
  EXPECT_EQ(settings.scheduler.swap_group, 20U);
  EXPECT_EQ(settings.scheduler.swap_timing, serving::SwapTiming::kBeside);
  EXPECT_TRUE(settings.scheduler.swap_reuse);
  ASSERT_TRUE(settings.prefill);
  EXPECT_EQ(settings.prefill->gpus, 1U);
  EXPECT_EQ(settings.prefill->link.value, 25e9);
  EXPECT_EQ(settings.prefill->writes, synth::KvWrites::kBlocks);
  EXPECT_FALSE(key_with_links(read(config)));
  config["fillers"][1]["program"]["engine"]["prefill"].erase("link");
  EXPECT_EQ(key_with_links(read(config)), "prefill");
}

// A window of 4096: beside an output of up to 96 tokens there is room for 4000.
TEST(EngineProgram, ALengthHasAtMostWhatTheWindowLeavesBesideTheOther) {
  const std::string text = R"({"max_model_len": 4096, "kv_blocks": 100})";
  const auto drawn = read(server(text, R"({"output_tokens": 96, "prompt_tokens":
      {"distribution": "lognormal", "mean": 300, "cv": 0.5}})"));
  const auto& lengths = std::get<workload::DrawnLengths>(*engine(drawn).requests.lengths);
  EXPECT_EQ(workload::longest(lengths.prompt), 4000U);
  const std::string open = R"({"distribution": "lognormal", "mean": 300, "cv": 0.5})";
  EXPECT_THAT(fault(server(text, R"({"prompt_tokens": )" + open + R"(, "output_tokens": )" + open +
                                     "}")),
              HasSubstr("found no \"most\" in either length; expected it in one of them"));
}

TEST(EngineProgram, LinksAndWritesOfPrefillThatNoSystemHasAreRefused) {
  Json config = server(R"({"max_model_len": 4096, "kv_blocks": 100,
      "prefill": {"gpus": 1, "link": "1B/s", "write": "5us"}})");
  config["fillers"][1]["mode"] = "online";
  config["fillers"][1]["arrivals"] = {{"process", "poisson"}, {"rate_per_s", 1}};
  EXPECT_THAT(fault(config), HasSubstr("1MB/s"));
  config["fillers"][1]["program"]["engine"]["prefill"]["link"] = "1MB/s";
  config["fillers"][1]["program"]["engine"]["prefill"]["write"] = "10s";
  EXPECT_THAT(fault(config), HasSubstr("1s"));
}

TEST(EngineProgram, AServerMayHaveSeveralGpus) {
  const std::string text = R"({"max_model_len": 4096, "kv_blocks": 100, "tensor_parallel": 2})";
  Json config = server(text);
  config["fillers"][1].erase("instances");
  const FillerConfig filler = read(config);
  EXPECT_EQ(engine(filler).settings.tensor, 2U);
  EXPECT_EQ(gpus_of_server(filler), 2U);
  EXPECT_EQ(gpus_of_server(read(server(R"({"max_model_len": 4096, "kv_blocks": 1})"))), 1U);
  config["fillers"][1]["instances"] = 1;
  EXPECT_THAT(fault(config), HasSubstr("a server over several GPUs has no fill jobs, no "
                                       "\"instances\" and no \"prefill\""));
  config["fillers"][1].erase("instances");
  config["fillers"][1]["gpus"] = {0, 1, 2};
  const Errors faults = check_ranks(*parse(config), {0, 1, 2, 3});
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_THAT(faults.front().text(),
              HasSubstr("found servers over 2 GPUs on 3; expected a divisor of that"));
}

TEST(EngineProgram, MembersOfAServerHaveGpusOfTheirOwn) {
  Json config = server(R"({"max_model_len": 4096, "kv_blocks": 100, "tensor_parallel": 2,
                           "data_parallel": 3})");
  config["fillers"][1].erase("instances");
  EXPECT_EQ(gpus_of_server(read(config)), 6U);
  EXPECT_EQ(key_with_links(read(config)), "tensor_parallel");
  config["fillers"][1]["program"]["engine"].erase("tensor_parallel");
  EXPECT_EQ(key_with_links(read(config)), "data_parallel");
  config["fillers"][1]["gpus"] = {0, 1};
  const Errors faults = check_ranks(*parse(config), {0, 1, 2, 3});
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_THAT(faults.front().text(),
              HasSubstr("/fillers/1/program/engine/data_parallel: found servers over 3 GPUs on 2"));
}

TEST(EngineProgram, DraftsHaveAChanceOrAListOfChances) {
  const std::string begin = R"({"max_model_len": 4096, "kv_blocks": 1, "pacing": "synchronous",
                                "speculation": {"tokens": 2, )";
  EXPECT_THAT(engine(read(server(begin + R"("acceptance": 0.5}})"))).settings.scheduler
                  .speculation.accepted,
              ::testing::ElementsAre(0.5, 0.25, 0.25));
  EXPECT_THAT(engine(read(server(begin + R"("accepted": [0.2, 0.3, 0.5]}})"))).settings.scheduler
                  .speculation.accepted,
              ::testing::ElementsAre(0.2, 0.3, 0.5));
  EXPECT_THAT(fault(server(begin + R"("accepted": [0.2, 0.3]}})")), HasSubstr("found 2 chances"));
  EXPECT_EQ(engine(read(server(begin + R"("accepted_file": "/data/a.csv"}})"))).accepted_file,
            "/data/a.csv");
  const FillerConfig drafted =
      read(server(begin + R"("acceptance": 0.5, "draft": "llama-68m"}})"));
  const auto& names = std::get<synth::InferenceNames>(drafted.program);
  ASSERT_TRUE(names.speculation);
  EXPECT_EQ(names.speculation->draft, "llama-68m");
  EXPECT_EQ(names.speculation->tree.expansion.size(), 2U);
  EXPECT_THAT(fault(server(begin + R"("acceptance": 0.5, "accepted_file": "a.csv"}})")),
              HasSubstr("accepted_file"));
}

TEST(EngineProgram, SessionsAreTurnsWithinTheWindow) {
  const auto filler = read(server(R"({"max_model_len": 4096, "kv_blocks": 100})",
                                  R"({"prompt_tokens": 64, "output_tokens": 16,
                                      "sessions": {"users": 8, "turns": 5}})"));
  const auto& lengths = std::get<workload::DrawnLengths>(*engine(filler).requests.lengths);
  ASSERT_TRUE(lengths.sessions);
  EXPECT_EQ(lengths.sessions->users, 8U);
  EXPECT_EQ(lengths.sessions->turns, 5U);
  EXPECT_EQ(lengths.sessions->window, 4096U);
}

TEST(EngineProgram, APrefixHitRateHasNoEffectOnSessionsAndIsRefused) {
  const char* requests = R"({"prompt_tokens": 64, "output_tokens": 16,
                             "sessions": {"users": 8, "turns": 5}})";
  const std::string begin = R"({"max_model_len": 4096, "kv_blocks": 100, "prefix_hit_rate": )";
  EXPECT_THAT(fault(server(begin + "0.5}", requests)),
              HasSubstr("sessions: found beside \"prefix_hit_rate\" 0.5 of \"engine\", which "
                        "has no effect on turns; expected one of them"));
  EXPECT_TRUE(parse(server(begin + "0}", requests))) << "the default";
  EXPECT_TRUE(parse(server(begin + "0.5}"))) << "without sessions";
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
  for (const auto& [setting, message] : {
           std::pair{R"("mixing": "prompts_apart")", "expected whole prompts"},
           {R"("rules": "vlm")", "vllm"},
           {R"("swap_reuse": true)", "expected preemption \"swap\""},
           {R"("preemption": "swap")",
            "\"swap\" with no room on the host to swap to; expected \"host_cache\""},
           {R"("host_cache": "1GB")",
            "without preemption by swapping; expected preemption \"swap\""},
           {R"("priority_period": 5)", "expected order \"priority\""},
           {R"("reserve": "request", "watermark": 0.5)",
            "watermark with whole requests reserved; expected 0"},
           {R"("speculation": {"tokens": 2, "acceptance": 0.5})", "expected pacing"}}) {
    EXPECT_THAT(fault(server(std::string(R"({"max_model_len": 4096, "kv_blocks": 1, )") + setting +
                             "}")),
                HasSubstr(message));
  }
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
