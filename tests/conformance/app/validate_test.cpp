// bubblesim validate RUN MEASURED: errors of every figure, what is missing, and how it exits.
#include <gmock/gmock.h>

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
  const Outcome done = succeed(place,  "validate run.json measured.json --csv e.csv --json e.json");
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
  ASSERT_EQ(place.shell("mkdir -p s/a m/a").code, 0);
  place.write("s/a/results.json", report(11e6, 63));
  place.write("m/a/results-1.json", report(12e6, 60));
  place.write("m/a/results-2.json", report(13e6, 61));
  const Outcome all = succeed(place, "validate s m --summary");
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
  const Outcome done = succeed(place, "validate out1 out1 --json e.json");
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
  expect_fault(place, "validate run.json bad.json",
               HasSubstr("bad.json: /policies/0/policy: found the number 5"));
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
  EXPECT_EQ(succeed(place, base + " --device ./mine.json").out, named.out);
  const Outcome config =
      place.bubblesim("run configs/runs/example.json --device h100 --policy exclusive --json");
  EXPECT_EQ(parse_json(config.out)["device"], "NVIDIA H100 80GB HBM3");
}

/// What bubblesim.steps writes of an engine's trace: a prompt of 300 tokens in 80 ms, and one
/// sequence that decodes behind 300 tokens in 20 ms.
void write_steps(const Workplace& place) {
  place.write("steps.json", R"({"format": "bubblesim.steps/1", "gpu": "", "source": "engine.json",
    "steps": [
      {"prompts": {"sequences": 1, "tokens": 300, "keys": 300, "squares": 90000, "products": 90000},
       "singles": {"sequences": 0, "tokens": 0, "keys": 0, "squares": 0, "products": 0},
       "kernels_us": 80000},
      {"prompts": {"sequences": 0, "tokens": 0, "keys": 0, "squares": 0, "products": 0},
       "singles": {"sequences": 1, "tokens": 1, "keys": 301, "squares": 1, "products": 301},
       "kernels_us": 20000}]})");
}

TEST(Run, AServersRecordedStepsAreItsKernelsTimes) {
  const Workplace place;
  write_steps(place);
  // Training is out of order from the start on.
  Json config = parse_json(R"({
    "name": "server", "duration": "10s", "device": "a100-80gb",
    "training": {"memory": "1GB", "faults": [{"at": "1ms", "detection": "1ms", "restart": "10min"}],
                 "synth": {"model": "llama-68m", "cluster": "a100-40gb-4",
                           "plan": {"data": 1, "global_batch": 1, "micro_batch": 1,
                                    "sequence": 16}}},
    "fillers": [{"name": "chat", "mode": "online",
                 "arrivals": {"process": "poisson", "rate_per_s": 1},
                 "program": {"model": "llama3-8b", "precision": "bf16", "decode": "graph",
                             "step_host": "500us",
                             "requests": {"prompt_tokens": 300, "output_tokens": 3},
                             "engine": {"max_model_len": 4096, "max_num_seqs": 8,
                                        "kv_cache": "4GB", "steps": "steps.json"}}}],
    "policies": ["mps"]})");
  Json& filler = config["fillers"][0];
  place.write("config.json", config.dump());
  const Outcome run = place.bubblesim("run config.json --json");
  ASSERT_LE(run.code, 1) << run.err;  // 1: training does nothing
  const Json server = parse_json(run.out)["policies"][0]["fillers"][0]["server"];
  // Half of the requests meet nobody else's prompt.
  EXPECT_NEAR(server["tpot"]["p50"]["value_ns"].get<double>() / 1e6, 20.5, 0.6)
      << server["tpot"].dump();
  filler["program"]["engine"]["layers"] = "steps.json";
  place.write("config.json", config.dump());
  expect_fault(place, "run config.json", HasSubstr("expected one of them"));
}

}  // namespace
}  // namespace bubblesim::app_test
