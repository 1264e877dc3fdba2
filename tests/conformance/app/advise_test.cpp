// bubblesim advise: answers, files, faults.
#include <gmock/gmock.h>

#include "tests/conformance/app/command.hpp"
#include "tests/conformance/app/doubtful_trace.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf, testing::HasSubstr;

constexpr const char* kAdvise =
    "advise traces/samples/training traces/samples/inference.json.gz --duration 1500ms --warmup "
    "300ms --budget 200ms --policy mps,stream_priority ";

class Advise : public AtWorkplace {};

TEST_F(Advise, PrintsAnAnswerAndWritesItsConfig) {
  const Outcome text = succeed(place, std::string(kAdvise) + "--keep 0.9 --config advice.json");
  EXPECT_THAT(text.out, AllOf(HasSubstr("iteration alone on 4 x"), HasSubstr("(oracle) would gain"),
                              HasSubstr("\nRun "), HasSubstr("  gains    "), HasSubstr("limit 0.9"),
                              HasSubstr("times what training loses"), HasSubstr("is random"),
                              HasSubstr("bubblesim run advice.json"),
                              HasSubstr("bubblesim fill --policy ")));
  const Json config = parse_json(place.read("advice.json"));
  EXPECT_EQ(config["policies"].size(), 1U);
  // The setting does again what the answer says.
  const Json advice = parse_json(
      succeed(place, std::string(kAdvise) + "--keep 0.9 --config advice.json --force --json").out);
  const Json report = parse_json(succeed(place, "run advice.json --json").out);
  EXPECT_EQ(report["policies"][0]["training"]["normalised_fraction"],
            advice["recommended"]["training_kept"]);
  EXPECT_EQ(report["policies"][0]["fillers"][0]["requests_per_s"],
            advice["recommended"]["requests_per_s"]);
}

// Two roads to every number of the recommendation: the search, and the commands that it hands out.
TEST_F(Advise, CommandsOfTheAnswerWork) {
  const Json advice = parse_json(
      succeed(place, std::string(kAdvise) + "--keep 0.9 --p95 100ms --json --config c.json").out);
  ASSERT_FALSE(advice["recommended"].is_null());
  ASSERT_EQ(advice["practice"].size(), 3U);
  const auto command = [&](std::size_t step) {
    return advice["practice"][step]["command"].get<std::string>();
  };
  EXPECT_EQ(command(0), "bubblesim run c.json");
  const Json report = parse_json(place.shell(command(0) + " --json").out);
  const Json& policy = report["policies"][0];
  EXPECT_EQ(policy["training"]["normalised_fraction"], advice["recommended"]["training_kept"]);
  EXPECT_EQ(policy["fillers"][0]["requests_per_s"], advice["recommended"]["requests_per_s"]);
  EXPECT_EQ(policy["fillers"][0]["latency"]["p95"]["value_ns"],
            advice["recommended"]["latency_p95_ns"]);

  const Outcome measured = place.shell(command(1) + " --fake --json");
  EXPECT_EQ(measured.code, 0) << measured.err;
  EXPECT_EQ(parse_json(measured.out)["measured"]["place"], "fake");

  // What stands behind policy and parameters is looked at when they have been accepted.
  const std::string fill = command(2);
  EXPECT_THAT(fill, HasSubstr("--filler-role online"));
  const Outcome filled = place.shell(fill + " --grace never");
  EXPECT_EQ(filled.code, 2);
  EXPECT_THAT(filled.err, HasSubstr("--grace"));
}

TEST_F(Advise, OfADoubtfulJobTheAnswerSaysSo) {
  place.write("doubtful.json", doubtful_trace());
  const Outcome text = place.bubblesim(
      "advise doubtful.json traces/samples/inference.json.gz --duration 500ms --warmup 100ms "
      "--budget 200ms --policy mps --keep 0.5");
  EXPECT_THAT(text.out, HasSubstr("  ! loss     program_what_ifs_doubtful: "));
}

TEST_F(Advise, WritesAPage) {
  succeed(place, std::string(kAdvise) + "--keep 0.9 --want both --html out/advice.html");
  const std::string page = place.read("out/advice.html");
  EXPECT_THAT(page, AllOf(HasSubstr("What to run: offline, online"), HasSubstr("\"front\":[")));
}

TEST_F(Advise, GoesOnWhereAStoreHasWhatItNeeds) {
  const std::string line = std::string(kAdvise) + "--json -o advice.db";
  EXPECT_EQ(succeed(place, line + " --threads 1").out, succeed(place, line + " --threads 3").out);
  EXPECT_THAT(succeed(place, std::string(kAdvise) + "-o advice.db").out, HasSubstr("; 0 runs now"));
  EXPECT_THAT(succeed(place, "results advice.db list --limit 1").out, HasSubstr("offline"));
}

TEST_F(Advise, SaysThatNothingGainsWithinTheLimits) {
  EXPECT_THAT(succeed(place, std::string(kAdvise) + "--keep 1").out, HasSubstr("Leave it alone"));
}

TEST_F(Advise, FaultsSayWhatWouldDo) {
  const std::string advise = kAdvise;
  expect_fault("advise", HasSubstr("expected either CONFIG, or TRAINING and FILLER"));
  expect_fault("advise traces/samples/training", HasSubstr("not a question"));
  expect_fault(advise + "--keep 1.2", HasSubstr("--keep"));
  expect_fault(advise + "--p95 fast", HasSubstr("--p95"));
  expect_fault(advise + "--p95 0s", HasSubstr("expected more than 0s"));
  expect_fault(advise + "--p95 1us", HasSubstr("expected at least that"));
  expect_fault(advise + "--want offline --p95 50ms", HasSubstr("has no latencies"));
  expect_fault(advise + "--slo tftt=1s", HasSubstr("did you mean \"ttft\"?"));
  expect_fault(advise + "--slo ttft=fast", HasSubstr("such as ttft=50ms"));
  expect_fault(advise + "--want offline --slo ttft=1s", HasSubstr("has no latencies"));
  expect_fault(advise + "--want offline --load 0.5", HasSubstr("always has a next request"));
  expect_fault(advise + "--can msp", HasSubstr("did you mean \"mps\"?"));
  expect_fault(advise + "--can mps --cannot mps", HasSubstr("expected it in one of them"));
  expect_fault(advise + "--budget 1", HasSubstr("--budget"));
  expect_fault(advise + "--filler-memory 200GB", AllOf(HasSubstr("needs 200.0 GB"),
                                                       HasSubstr("expected at most that")));
  expect_fault("advise configs/advise/example.json --want online", HasSubstr("expected no --want"));
  expect_fault("advise configs/runs/example.json", HasSubstr("found a run config, not a question"));
  expect_fault(advise + "--p95 1s --load 5", HasSubstr("expected at most 1"));
  expect_fault(advise + "--load 5", HasSubstr("expected at most 1"));  // alone, it means online
  expect_fault("advise traces/samples/training traces/samples/inference.json.gz --policy mps,mps",
               HasSubstr("found \"mps\" again"));
  expect_fault(advise + "--cannot mps", HasSubstr("found \"mps\", which demands mps"));
}

}  // namespace
}  // namespace bubblesim::app_test
