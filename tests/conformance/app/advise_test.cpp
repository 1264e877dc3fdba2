// bubblesim advise: answers, files, faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kAdvise =
    "advise traces/samples/training traces/samples/inference.json.gz --duration 1500ms --warmup "
    "300ms --budget 1s --policy mps,stream_priority ";

TEST(Advise, PrintsAnAnswerAndWritesItsConfig) {
  const Workplace place;
  const Outcome text = succeed(place, std::string(kAdvise) + "--keep 0.9 --config advice.json");
  EXPECT_THAT(text.out, AllOf(HasSubstr("iteration alone on 4 x"), HasSubstr("(oracle) would gain"),
                              HasSubstr("\nRun "), HasSubstr("  gains    "), HasSubstr("limit 0.9"),
                              HasSubstr("other seeds"), HasSubstr("bubblesim run advice.json"),
                              HasSubstr("bubblesim fill --policy ")));
  const Json config = parse_json(place.read("advice.json"));
  EXPECT_EQ(config["policies"].size(), 1U);
  // The setting does again what the answer says.
  const Json advice = parse_json(
      succeed(place, std::string(kAdvise) + "--keep 0.9 --config advice.json --json").out);
  const Json report = parse_json(succeed(place, "run advice.json --json").out);
  EXPECT_EQ(report["policies"][0]["training"]["normalised_fraction"],
            advice["recommended"]["training_kept"]);
  EXPECT_EQ(report["policies"][0]["fillers"][0]["requests_per_s"],
            advice["recommended"]["requests_per_s"]);
}

TEST(Advise, GoesOnWhereAStoreHasWhatItNeeds) {
  const Workplace place;
  const std::string line = std::string(kAdvise) + "--json -o advice.db";
  const std::string first = succeed(place, line + " --threads 1").out;
  EXPECT_EQ(first, succeed(place, line + " --threads 3").out);
  EXPECT_THAT(succeed(place, std::string(kAdvise) + "-o advice.db").out, HasSubstr("; 0 runs now"));
  EXPECT_THAT(succeed(place, "results advice.db list --limit 1").out, HasSubstr("offline"));
}

TEST(Advise, SaysThatNothingGainsWithinTheLimits) {
  const Workplace place;
  const Outcome text = succeed(place, std::string(kAdvise) + "--keep 1");
  EXPECT_THAT(text.out, HasSubstr("Leave it alone"));
}

TEST(Advise, FaultsSayWhatWouldDo) {
  const std::string advise = kAdvise;
  expect_fault("advise", HasSubstr("expected either CONFIG, or TRAINING and FILLER"));
  expect_fault("advise traces/samples/training", HasSubstr("not a question"));
  expect_fault(advise + "--keep 1.2", HasSubstr("--keep"));
  expect_fault(advise + "--p95 fast", HasSubstr("--p95"));
  expect_fault(advise + "--p95 0s", HasSubstr("expected more than 0s"));
  expect_fault(advise + "--p95 1us", HasSubstr("expected at least that"));
  expect_fault(advise + "--want offline --p95 50ms", HasSubstr("has no latencies"));
  expect_fault(advise + "--want offline --load 0.5", HasSubstr("always has a next request"));
  expect_fault(advise + "--can msp", HasSubstr("did you mean \"mps\"?"));
  expect_fault(advise + "--can mps --cannot mps", HasSubstr("expected it in one of them"));
  expect_fault(advise + "--budget 1", HasSubstr("--budget"));
  expect_fault(advise + "--filler-memory 200GB", AllOf(HasSubstr("needs 200.0 GB"),
                                                       HasSubstr("expected at most that")));
  expect_fault("advise configs/advise/example.json --want online", HasSubstr("expected no --want"));
  expect_fault("advise configs/runs/example.json", HasSubstr("\"base\" is missing"));
}

}  // namespace
}  // namespace bubblesim::app_test
