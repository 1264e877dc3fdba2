// bubblesim synth, models, plans, clusters: what they print and write, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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
  EXPECT_GT(late["bubbles"].value("iteration_ns", 0.0),
            1.05 * late["iteration_ns"].get<double>());
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
  const Json inspected = parse_json(succeed(place, "inspect t/job.btr --json").out);
  EXPECT_EQ(inspected["job"]["ranks"], 4);
  const Json replay = parse_json(succeed(place, "inspect t/job.btr --replay --json").out);
  EXPECT_LT(replay["replay"]["worst_error"], 0.001);
}

TEST_F(Synth, TwiceGivesTheSameBytes) {
  const std::string words =
      "synth --model gpt2-large --plan pp-4-1f1b --cluster a100-40gb-4 ";
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

TEST(Lists, OfModelsPlansAndClustersHoldWhatSynthTakes) {
  const Workplace place;
  for (const auto& [list, id] : {std::pair{"models", "roberta-large"}, {"plans", "ddp-4"},
                                 {"clusters", "a100-40gb-4"}}) {
    EXPECT_THAT(succeed(place, list).out, HasSubstr(std::string(id) + " ")) << list;
    bool found = false;
    for (const Json& entry : parse_json(succeed(place, std::string(list) + " --json").out)) {
      found = found || entry.value("id", "") == id;
    }
    EXPECT_TRUE(found) << list;
  }
}

}  // namespace
}  // namespace bubblesim::app_test
