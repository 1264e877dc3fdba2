// bubblesim synth, models, plans, clusters: what they print and write, and what is refused.
#include <gmock/gmock.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf, testing::HasSubstr, testing::Not;
using Lists = AtWorkplace;

constexpr const char* kDdp = "synth --model roberta-large --plan ddp-4 --cluster a100-40gb-4 ";

Json synth_json(const Workplace& place, const std::string& arguments) {
  succeed(place, arguments + " --json synth.json");
  return parse_json(place.read("synth.json"));
}

class Synth : public AtWorkplace {};

TEST_F(Synth, SaysWhatWasBuiltHowLongItTakesAndWhatMemoryItNeeds) {
  const Outcome outcome = succeed(place, kDdp);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("RoBERTa large on 4 of"),
                                 HasSubstr("simulated: 1 of 4 ranks (each stands for 4)"),
                                 HasSubstr("iteration  "), HasSubstr("TFLOP/s a GPU"),
                                 HasSubstr("samples/s"), HasSubstr("tokens/s"),
                                 HasSubstr("bubbles "), HasSubstr("memory, GB of"),
                                 HasSubstr("synth_ranks_folded")));
}

// 1.4 GB over 125 MB/s take seconds, two iterations a tenth of one.
TEST_F(Synth, SaysThatExchangesBetweenRegionsFallBehind) {
  const std::string words = "synth --model roberta-large --cluster two-regions --plan ";
  EXPECT_THAT(succeed(place, words + "wide-area-asynchronous --set wide_area/every=2").out,
              HasSubstr("which exchanges that nobody waits for need: in "));
  EXPECT_THAT(succeed(place, words + "wide-area-averaging --set wide_area/every=2").out,
              Not(HasSubstr("fall behind")));
}

// The bubbles are of iterations as the exchanges let them repeat; kernels are of one of two.
TEST_F(Synth, JsonSaysThatExchangesFallBehindAndCountsAnIteration) {
  const std::string words = "synth --model roberta-large --cluster two-regions --plan ";
  const Json late = synth_json(place, words + "wide-area-asynchronous --set wide_area/every=2");
  EXPECT_GT(late["bubbles"].value("iteration_ns", 0.0), 1.05 * late["iteration_ns"].get<double>());
  ASSERT_TRUE(late["counters"].contains("synth_exchanges_fall_behind"));
  EXPECT_EQ(late["counters"]["synth_exchanges_fall_behind"]["severity"], "notice");
  EXPECT_EQ(late["iterations_a_pass"], 2);
  const Json four = synth_json(place, words + "wide-area-asynchronous --set wide_area/every=4");
  EXPECT_EQ(late["kernels"], four["kernels"]);
  const Json waits = synth_json(place, words + "wide-area-averaging --set wide_area/every=2");
  EXPECT_FALSE(waits["counters"].contains("synth_exchanges_fall_behind"));
}

TEST_F(Synth, JsonRatesFollowFromTheIteration) {
  const Json json = synth_json(place, kDdp);
  EXPECT_EQ(json.value("format", ""), "bubblesim.synth/1");
  EXPECT_EQ(json["world_size"], 4);
  EXPECT_EQ(json["fold"], 4);
  const double seconds = json["iteration_ns"].get<double>() * 1e-9;
  ASSERT_GT(seconds, 0);
  EXPECT_NEAR(json["samples_per_s"].get<double>() * seconds, 32, 1e-6);
  EXPECT_NEAR(json["tokens_per_s"].get<double>() * seconds, 32 * 512, 1e-3);
  const Json& rank = json["ranks"][0];
  EXPECT_NEAR(rank["peak_bytes"].get<double>() + rank["free_bytes"].get<double>(),
              json["memory_bytes"].get<double>(), 1);
}

TEST_F(Synth, ItsTraceIsOneThatInspectAndReplayRead) {
  const Json json = synth_json(place, std::string(kDdp) + "--fold nothing -o t/job.btr");
  EXPECT_EQ(json["simulated_ranks"], 4);
  EXPECT_EQ(json_of(place, "inspect t/job.btr --json")["job"]["ranks"], 4);
  const Json replay = json_of(place, "inspect t/job.btr --replay --json");
  EXPECT_LT(replay["replay"]["worst_error"], 0.001);
}

TEST_F(Synth, TwiceGivesTheSameBytes) {
  const std::string words = "synth --model gpt2-large --plan pp-4-1f1b --cluster a100-40gb-4 ";
  succeed(place, words + "-o a.btr --json a.json");
  succeed(place, words + "-o b.btr --json b.json");
  EXPECT_FALSE(place.read("a.btr").empty());
  EXPECT_TRUE(place.read("a.btr") == place.read("b.btr"));
  EXPECT_EQ(place.read("a.json"), place.read("b.json"));
}

TEST_F(Synth, SetReplacesKeysOfThePlan) {
  const Json json = synth_json(place, std::string(kDdp) + "--set data=2 --set /micro_batch=4 "
                                      "--set /gradients/bucket=50MiB --software pytorch");
  EXPECT_EQ(json["plan"]["data"], 2);
  EXPECT_EQ(json["plan"]["micro_batches"], 4);
}

TEST_F(Synth, WritesThePipelinesScheduleAsCsvThatSchedulesRead) {
  succeed(place, "synth --model gpt2-large --plan pp-4-gpipe --cluster a100-40gb-4 "
                 "--csv-schedule s.csv");
  EXPECT_THAT(succeed(place, "schedule --from s.csv").out, HasSubstr("4 ranks, 4 stages"));
}

TEST_F(Synth, NamesThatAreNotThereAreAllReportedWithTheNearest) {
  expect_fault("synth --model roberta-larg --plan ddp4 --cluster a100-40gb",
               AllOf(HasSubstr("did you mean \"roberta-large\"?"),
                     HasSubstr("did you mean \"ddp-4\"?"),
                     HasSubstr("did you mean \"a100-40gb-4\"?")));
  expect_fault(std::string(kDdp) + "--software pytorc", HasSubstr("\"pytorch\""));
  expect_fault(std::string(kDdp) + "--set dat=8", HasSubstr("did you mean \"data\"?"));
  expect_fault(std::string(kDdp) + "--set data", HasSubstr("expected KEY=VALUE"));
}

TEST_F(Synth, PlansThatDoNotDivideOrFitNameTheNearest) {
  expect_fault(std::string(kDdp) + "--set global_batch=30 --set data=8",
               AllOf(HasSubstr("at most 4 GPUs"), HasSubstr("nearest: 64")));
  expect_fault("synth --model gpt2-large --plan pp-4-1f1b --cluster dgx-a100-80gb "
               "--set pipeline=8",
               HasSubstr("36 blocks do not divide into 8 stages"));
  expect_fault("synth --model llama2-7b --plan ddp-4 --cluster a100-40gb-4",
               AllOf(HasSubstr("needs"), HasSubstr("parameters"), HasSubstr("nearest that fits")));
}

TEST_F(Lists, OfModelsPlansAndClustersHoldWhatSynthTakes) {
  for (const auto& [list, id] : {std::pair{"models", "roberta-large"}, {"plans", "ddp-4"},
                                 {"clusters", "a100-40gb-4"}}) {
    EXPECT_THAT(succeed(place, list).out, HasSubstr(std::string(id) + " ")) << list;
    bool found = false;
    for (const Json& entry : json_of(place, std::string(list) + " --json")) {
      found = found || entry.value("id", "") == id;
    }
    EXPECT_TRUE(found) << list;
  }
}

// Synthesised training jobs inside runs: the three published settings under every policy.

using testing::IsEmpty;

// A config of configs/runs, shorter.
void write_short(const Workplace& place, const std::string& name, const std::string& as) {
  Json config = parse_json(place.read("configs/runs/" + name));
  ASSERT_TRUE(config.is_object()) << name;
  config["duration"] = "2s";
  config["warmup"] = "500ms";
  std::string text = config.dump();
  for (std::size_t up = text.find("../../"); up != std::string::npos; up = text.find("../../")) {
    text.erase(up, 6);
  }
  place.write(as, text);
}

const Json& policy_of(const Json& report, const std::string& name) {
  for (const Json& policy : report["policies"]) {
    if (policy["policy"] == name) return policy;
  }
  static const Json none;
  return none;
}

class SynthesisedRun : public testing::TestWithParam<const char*> {};

TEST_P(SynthesisedRun, RunsUnderEveryPolicyOfItsConfig) {
  const Workplace place;
  write_short(place, GetParam(), "run.json");
  const Outcome outcome = succeed(place, "run run.json --json");
  const Json report = parse_json(outcome.out);
  const Json config = parse_json(place.read("run.json"));
  for (const Json& policy : config["policies"]) {
    const Json& result = policy_of(report, policy);
    ASSERT_TRUE(result.is_object()) << policy;
    EXPECT_GT(result["training"]["iterations"], 0) << policy;
    EXPECT_GT(result["training"]["samples_per_s"], 0) << policy;
  }
  const Json& baseline = report["baseline"];
  EXPECT_TRUE(baseline["recorded_iteration_mean_ns"].is_null());
  EXPECT_TRUE(baseline["replay_error_fraction"].is_null());
  EXPECT_EQ(baseline["bubbles"].size(), report["ranks"]);
  for (const Json& gpu : baseline["bubbles"]) {
    if (gpu["bubbles"] == 0) continue;
    EXPECT_GT(gpu["free_memory_least_bytes"], 0) << gpu;
    EXPECT_GE(gpu["free_memory_mean_bytes"], gpu["free_memory_least_bytes"]) << gpu;
  }
}

INSTANTIATE_TEST_SUITE_P(Published, SynthesisedRun,
                         testing::Values("dp-4xa100.json", "mp-4xa100.json", "pp-4xa100.json"),
                         [](const auto& run) { return std::string(run.param).substr(0, 2); });

class SynthesisedRuns : public AtWorkplace {};

TEST_F(SynthesisedRuns, APipelinesWaitsAreBubblesThatPipeFillFills) {
  write_short(place, "pp-4xa100.json", "run.json");
  const Outcome outcome = succeed(place, "run run.json --json --policy exclusive,pipefill");
  const Json report = parse_json(outcome.out);
  for (const Json& gpu : report["baseline"]["bubbles"]) {
    EXPECT_GT(gpu["pipeline_time_ns"], 0) << gpu;
  }
  const Json& result = policy_of(report, "pipefill");
  EXPECT_GT(result["fillers"][0]["requests_completed"], 0);
}

TEST_F(SynthesisedRuns, FoldedRanksAreSaidInTableAndJson) {
  write_short(place, "dp-4xa100.json", "whole.json");
  std::string config = place.read("whole.json");
  config.replace(config.find("\"nothing\""), 9, "\"all\"");
  place.write("run.json", config);
  const Outcome text = succeed(place, "run run.json --policy exclusive");
  EXPECT_THAT(text.out, AllOf(HasSubstr("each simulated GPU stands for 4 of the job's 4 ranks"),
                              Not(HasSubstr("recorded")), Not(HasSubstr("replay error"))));
  const Json report = parse_json(place.bubblesim("run run.json --policy exclusive --json").out);
  EXPECT_EQ(report["ranks"], 1);
  EXPECT_EQ(report["ranks_per_gpu"], 4);
  EXPECT_EQ(report["world_size"], 4);
  const Outcome whole = place.bubblesim("run whole.json --policy exclusive --json");
  EXPECT_EQ(parse_json(whole.out)["ranks"], 4);
  EXPECT_EQ(parse_json(whole.out)["ranks_per_gpu"], 1);
}

TEST_F(SynthesisedRuns, TwiceAndOnSeveralThreadsGiveTheSameBytes) {
  write_short(place, "pp-4xa100.json", "run.json");
  const std::string words = "run run.json --policy mps,specinf,pipefill --json --threads ";
  const Outcome on_one = succeed(place, words + "1");
  EXPECT_THAT(on_one.out, Not(IsEmpty()));
  EXPECT_EQ(on_one.out, place.bubblesim(words + "1").out);
  EXPECT_EQ(on_one.out, place.bubblesim(words + "4").out);
}

// Two nodes of eight GPUs, data parallel; `links` are the config's slow links.
std::string on_two_nodes(const std::string& links) {
  return R"({"name": "links", "duration": "3s", "warmup": "500ms", "policies": ["exclusive"],
    "fillers": [], "training": {"synth": {"model": "gpt2-large", "cluster": "dgx-a100-80gb",
      "nodes": 2, "plan": {"data": 16, "global_batch": 32, "micro_batch": 2, "sequence": 512,
                           "software": "pytorch"}},
    "slow_links": [)" + links + "]}}";
}

double iteration_ms(const Workplace& place, const std::string& links) {
  place.write("run.json", on_two_nodes(links));
  const Outcome outcome = succeed(place, "run run.json --json");
  if (outcome.code != 0) return 0;
  const Json report = parse_json(outcome.out);
  return report["policies"][0]["training"]["iteration_mean_ns"].get<double>() / 1e6;
}

// Once the exchange is all that an iteration waits for, it grows by what the bytes over the link
// take: from 8 to 16 times as slow by eight of these times. 774 million gradients of 2 bytes in a
// ring over 16: 15/8 of their bytes over 8 NICs of 24 GB/s.
TEST_F(SynthesisedRuns, ASlowLinkCostsWhatItsBytesTake) {
  const std::string nic = R"({"link": "nic", "gpu": 9, "slowdown": )";
  const double eight = iteration_ms(place, nic + "8}");
  const double sixteen = iteration_ms(place, nic + "16}");
  EXPECT_NEAR((sixteen - eight) / 8, 774e6 * 2 * 15 / 8 / 8 / 24e9 * 1e3, 0.02);
  EXPECT_EQ(iteration_ms(place, nic + R"(8, "from": "50s"})"), iteration_ms(place, ""));
}

TEST_F(SynthesisedRuns, ALinkThatIsSlowTooLateIsSaidToChangeNothing) {
  place.write("run.json",
              on_two_nodes(R"({"link": "nic", "gpu": 9, "slowdown": 8, "from": "50s"})"));
  const Outcome outcome = succeed(place, "run run.json --notices");
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("/training/slow_links/0: begins at 50s"));
}

TEST_F(SynthesisedRuns, FaultsOfSlowLinksNameTheEntry) {
  const auto expect = [&](const std::string& links, const std::string& message) {
    place.write("run.json", on_two_nodes(links));
    expect_fault(place, "run run.json", HasSubstr(message));
  };
  const std::string nic = R"({"link": "nic", "gpu": 0, "slowdown": 8})";
  expect(R"({"link": "nic", "gpu": 16, "slowdown": 8})", "/training/slow_links/0: found GPU 16; "
         "the cluster has GPUs 0 to 15");
  expect(R"({"link": "leaf", "gpu": 0, "slowdown": 8})", "has no link of this kind");
  expect(nic + "," + nic, "/training/slow_links/1: the same link is slow already");
  expect(R"({"link": "nic", "gpu": 0, "slowdown": 0.5})", "expected");
}

// bubblesim schedule: tables by name or from CSV, and what is refused.
class ScheduleTest : public AtWorkplace {};

TEST_F(ScheduleTest, PrintsTableBubblesAndClosedForm) {
  const Outcome outcome = succeed(place, "schedule 1f1b --stages 4 --micro-batches 8");
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("rank 3  .  .  .  F0 B0--- F1"),
                    HasSubstr("bubble, makespan       27.27 %"),
                    HasSubstr("(p-1)(F+B) = 9 idle a rank in its makespan; here 9"),
                    HasSubstr("peak activations       4 3 2 1")));
}

TEST_F(ScheduleTest, WhatItWritesItReads) {
  const std::string files = " --csv t/a.csv --plot t/a.svg --json t/a.json";
  EXPECT_EQ(place.bubblesim("schedule dualpipe --stages 4 --micro-batches 8" + files).code, 0);
  EXPECT_THAT(place.read("t/a.svg"), HasSubstr("</svg>"));
  EXPECT_EQ(parse_json(place.read("t/a.json")).value("format", ""), "bubblesim.schedule/1");
  const Outcome again = succeed(place, "schedule --from t/a.csv --csv t/b.csv");
  EXPECT_EQ(place.read("t/a.csv"), place.read("t/b.csv"));
}

TEST_F(ScheduleTest, RefusalsNameThePlaceAndTheNearestPlan) {
  expect_fault(place, "schedule 1f1", HasSubstr("did you mean \"1f1b\"?"));
  expect_fault(place, "schedule interleaved --micro-batches 9", HasSubstr("nearest: 8 or 12"));
  expect_fault(place, "schedule 1f1b --times F=1.5", HasSubstr("WHOLE NUMBER"));
  expect_fault(place, "schedule graph --edges 0-9", HasSubstr("edge 0-9"));
  expect_fault(place, "schedule --from nowhere.csv", HasSubstr("nowhere.csv"));
  expect_fault(place, "schedule 1f1b --from x.csv", HasSubstr("excludes"));
  place.write("dead.csv", "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  expect_fault(place, "schedule --from dead.csv",
               AllOf(HasSubstr("dead.csv: rank 0, action 1: deadlock: 0B0 waits for"),
                     HasSubstr("dead.csv: rank 1, action 1: deadlock: 1F1 waits for 0F1")));
}

TEST_F(ScheduleTest, TimesAreGivenOnceAndThoseWithoutEffectAreNoted) {
  expect_fault(place, "schedule 1f1b --times F=1,F=2", HasSubstr("--times: found F twice"));
  const Outcome split = succeed(place, "schedule zb-h1 --times B=5,FB=9");
  EXPECT_THAT(split.out, AllOf(HasSubstr("note: B changes nothing"),
                               HasSubstr("note: FB changes nothing")));
  EXPECT_THAT(place.bubblesim("schedule 1f1b --times B=5").out, testing::Not(HasSubstr("note:")));
}

TEST_F(ScheduleTest, StagesAreAsManyAsItsTableHolds) {
  for (const char* stages : {"-1", "0", "16385"}) {
    expect_fault(place, std::string("schedule 1f1b --stages ") + stages,
                 HasSubstr("not in range 1 to 16384"));
  }
}

}  // namespace
}  // namespace bubblesim::app_test
