// bubblesim validate RUN MEASURED: errors of every figure, what is missing, and how it exits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr;

// A report of config "pair" whose policy "mps" has this iteration and this filler throughput.
std::string report(double iteration_ns, double requests_per_s, const std::string& policy = "mps") {
  Json filler = {{"name", "svc"}, {"requests_per_s", requests_per_s}};
  Json result = {{"policy", policy},
                 {"training", {{"iteration_mean_ns", iteration_ns}}},
                 {"fillers", Json::array({filler})}};
  Json baseline = {{"training_iteration_mean_ns", 10e6},
                   {"fillers", Json::array({{{"name", "svc"}, {"requests_per_s", 100.0}}})}};
  return Json({{"config", "pair"}, {"device", "card"}, {"baseline", baseline},
               {"policies", Json::array({result})}})
      .dump();
}

TEST(Validate, ComparesTwoReportsAndWritesWhatIsAskedFor) {
  const Workplace place;
  place.write("run.json", report(11e6, 63));
  place.write("measured.json", report(12e6, 60));
  const Outcome done = place.bubblesim(
      "validate run.json measured.json --csv e.csv --json e.json");
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("pair (measured 1 time;"));
  EXPECT_THAT(done.out, HasSubstr("filler_throughput  <=  5 %      met: 5.00"));
  EXPECT_THAT(done.out, HasSubstr("note: MEASURED holds reports that were simulated"));
  const Json json = parse_json(place.read("e.json"));
  EXPECT_EQ(json["summary"][0]["metric"], "training_slowdown");
  EXPECT_NEAR(json["summary"][0]["mean_absolute_error"].get<double>(), 10, 1e-9);
  EXPECT_EQ(csv_of(place.read("e.csv")).size(), 1U + json["cells"].size());
}

TEST(Validate, FoldersAreJudgedAtOnceWithRepetitionsAndRoles) {
  const Workplace place;
  const Outcome made = place.shell("mkdir -p s/a m/a");
  ASSERT_EQ(made.code, 0);
  place.write("s/a/results.json", report(11e6, 63));
  place.write("m/a/results-1.json", report(12e6, 60));
  place.write("m/a/results-2.json", report(13e6, 61));
  const Outcome all = place.bubblesim("validate s m --summary");
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("judge training_slowdown"));
  EXPECT_THAT(all.out, testing::Not(HasSubstr("measured 2 times")));
  place.write("roles.csv", "config,policy,role\npair,*,fit\n");
  const Outcome fit = place.bubblesim("validate s m --role roles.csv");
  EXPECT_THAT(fit.out, HasSubstr("measured 2 times"));
  EXPECT_THAT(fit.out, testing::Not(HasSubstr("judge training_slowdown")));
  EXPECT_EQ(place.bubblesim("validate s m --fit pair").out, fit.out);
}

TEST(Validate, WhatWasMeasuredAndNotSimulatedIsNamedAndFails) {
  const Workplace place;
  place.write("run.json", report(11e6, 63, "mps"));
  place.write("measured.json", report(11e6, 63, "tgs"));
  const Outcome done = place.bubblesim("validate run.json measured.json");
  EXPECT_EQ(done.code, 1);
  EXPECT_THAT(done.out, HasSubstr("FAILED: not simulated:\n    pair/tgs"));
  EXPECT_THAT(done.out, HasSubstr("not measured:\n    pair/mps"));
}

TEST(Validate, ARunAgreesWithItself) {
  const ShortWorkplace place;
  ASSERT_EQ(place.bubblesim("run configs/runs/example.json --out out1").code, 0);
  const Outcome done = place.bubblesim("validate out1 out1 --json e.json");
  EXPECT_EQ(done.code, 0) << done.err;
  const Json summaries = parse_json(place.read("e.json"))["summary"];
  ASSERT_FALSE(summaries.empty());
  for (const Json& summary : summaries) {
    EXPECT_EQ(summary["mean_absolute_error"], 0.0) << summary["metric"];
  }
}

TEST(Validate, FaultsNameFileAndPlace) {
  const Workplace place;
  place.write("run.json", report(11e6, 63));
  place.write("bad.json", R"({"config": "pair", "policies": [{"policy": 5}]})");
  const Outcome bad = place.bubblesim("validate run.json bad.json");
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.json: /policies/0/policy: found the number 5"));
  for (const char* line : {"validate", "validate run.json", "validate run.json nowhere.json",
                           "validate run.json run.json --fit nothing",
                           "validate run.json run.json --role nowhere.csv",
                           "validate run.json run.json --tie -1"}) {
    const Outcome fault = place.bubblesim(line);
    EXPECT_EQ(fault.code, 2) << line;
    EXPECT_FALSE(fault.err.empty()) << line;
  }
}

TEST(Run, TakesADeviceFileOfOnesOwn) {
  const ShortWorkplace place;
  ASSERT_EQ(place.shell("cp configs/devices/a100-40gb.json mine.json").code, 0);
  const std::string base =
      "run --synth-model roberta-large --plan ddp-4 --cluster a100-40gb-4 "
      "--filler traces/samples/inference.json.gz --policy exclusive --duration 300ms "
      "--warmup 50ms --mode offline --json";
  const Outcome named = place.bubblesim(base);
  const Outcome own = place.bubblesim(base + " --device ./mine.json");
  EXPECT_EQ(own.code, 0) << own.err;
  EXPECT_EQ(own.out, named.out);
  const Outcome config =
      place.bubblesim("run configs/runs/example.json --device h100 --policy exclusive --json");
  EXPECT_EQ(parse_json(config.out)["device"], "NVIDIA H100 80GB HBM3");
}

/// A bundle of one request of 300 tokens and three more, in folder "run".
void write_bundle(const Workplace& place, const std::string& meta) {
  ASSERT_EQ(place.shell("mkdir -p run/vllm").code, 0);
  place.write("run/config.json",
              R"({"link_bw": 16, "link_latency": 0,
                  "nodes": [{"instances": [{"hardware": "RTX4090"}]}]})");
  place.write("run/vllm/meta.json", meta);
  place.write("run/vllm/requests.jsonl",
              R"({"request_id": "a", "input_toks": 300, "output_toks": 3, "arrival_time": 10,)"
              R"( "queued_ts": 1, "first_token_ts": 2, "last_token_ts": 3})"
              "\n");
}

std::string settings(const std::string& more) {
  return R"({"model": "meta-llama/Llama-3.1-8B", "vllm_version": "0.19.0", )"
         R"("engine_kwargs": {"max_num_seqs": 8, "max_num_batched_tokens": 512, )" +
         more + "}";
}

TEST(ValidateServing, WhatCannotBeServedIsASentenceAndExitCode2) {
  const Workplace place;
  write_bundle(place, R"({"model": "meta-llama/Llama-3.1-8B"})");
  expect_fault(place, "validate serving run", HasSubstr("expected the engine's settings"));
  write_bundle(place, settings(R"("max_model_len": 200})"));
  expect_fault(place, "validate serving run", HasSubstr("but the model's window is 200"));
  write_bundle(place, settings(R"("max_model_len": 4096}, "kv_cache": {"num_gpu_blocks": 4})"));
  expect_fault(place, "validate serving run", HasSubstr("but the whole KV cache holds 48"));
  place.write("layers.json", "{}");
  expect_fault(place, "validate serving run --layers layers.json", HasSubstr("layers.json"));
}

}  // namespace
}  // namespace bubblesim::app_test
