// bubblesim fill from end to end: the program, the gate of the build tree, jobs on a stand-in of
// the driver (tests/fakes/live).
#include <gmock/gmock.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr;

// The verbs are those of tests/fakes/live/live_job.cpp.
std::string live_job(const std::string& verbs) {
  return "'" + std::string(BUBBLESIM_LIVE_JOB) + " v2 " + verbs + "'";
}

std::string fill(const std::string& options, const std::string& train, const std::string& filler) {
  return "LD_LIBRARY_PATH='" + std::string(BUBBLESIM_LIVE_DRIVER) +
         "' FAKE_DRIVER_LOG=$PWD/.driver bubblesim fill " + options + " --train " +
         live_job(train) + " --fill " + live_job(filler);
}

/// Training of 30 kernels and two copies, beside a filler.
Outcome fill_under(const Workplace& place, const std::string& policy) {
  return place.shell(fill("--json --policy " + policy, "pace:30 copy:2", "pace:0"));
}

class FillCommand : public AtWorkplace {};

TEST_F(FillCommand, RunsBothUnderAPolicyAndReportsThem) {
  const Outcome outcome = fill_under(place, "tgs");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = parse_json(lines_of(outcome.out).back());
  EXPECT_EQ(json.at("sharing"), "time slices");
  EXPECT_EQ(json.at("training").at("kernels"), 30);
  EXPECT_EQ(json.at("training").at("copies"), 2);
  EXPECT_EQ(json.at("training").at("gated_processes"), 1);
  EXPECT_EQ(json.at("filler_stopped"), true);
  EXPECT_EQ(json.at("fault"), nullptr);
  EXPECT_GT(json.at("policy_calls"), 30);
  EXPECT_THAT(outcome.err, HasSubstr("decision latency"));
}

// Launches of both are counted; none is held, asks, or counts as one that nobody decided on.
TEST_F(FillCommand, APolicyThatDoesNotLookAtLaunchesIsToldOfNone) {
  const Outcome outcome = fill_under(place, "time_slicing");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = parse_json(lines_of(outcome.out).back());
  EXPECT_EQ(json.at("training").at("kernels"), 30);
  EXPECT_GT(json.at("filler").at("kernels"), 0);
  for (const char* job : {"training", "filler"}) {
    EXPECT_EQ(json.at(job).at("undecided"), 0) << job;
    EXPECT_EQ(json.at(job).at("held"), 0) << job;
  }
  EXPECT_GE(json.at("policy_calls"), 32);
  EXPECT_EQ(json.at("decision_latency").at("count"), 0);
  EXPECT_THAT(outcome.err, HasSubstr("no launch asked for a verdict"));
}

TEST_F(FillCommand, TheExitCodeIsTrainings) {
  EXPECT_EQ(place.shell(fill("--policy xsched --after-death stop", "launch:1 exit:7", "pace:0"))
                .code, 7);
  EXPECT_EQ(place.shell(fill("--policy xsched", "launch:1 kill", "pace:5")).code, 137);
}

TEST_F(FillCommand, PoliciesThatCannotDecideHereAreRefusedBeforeAnythingStarts) {
  const Outcome outcome = place.shell(fill("--policy orion", "launch:1", "launch:1"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("profiled durations"));
  EXPECT_THAT(place.read(".driver"), testing::IsEmpty());
  EXPECT_THAT(place.shell(fill("--policy tgz", "", "")).err, HasSubstr("tgs"));
  EXPECT_THAT(place.shell(fill("--policy tgs --set windw=3ms", "", "")).err, HasSubstr("window"));
}

TEST_F(FillCommand, WithoutMpsAPolicyThatNeedsItIsRefused) {
  const Outcome outcome =
      place.shell("PATH=$PWD/.bin:/usr/bin:/bin; command -v nvidia-cuda-mps-control && exit 77; " +
                  fill("--policy specinf", "launch:1", "launch:1"));
  if (outcome.code == 77) GTEST_SKIP() << "there is an MPS daemon here";
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("nvidia-cuda-mps-control"));
  EXPECT_THAT(place.read(".driver"), testing::IsEmpty());
}

// Of a killed tool nothing is left but the two programs, and those go on to their ends.
TEST_F(FillCommand, ThatIsKilledLetsBothProgramsGoOn) {
  const Outcome outcome = place.shell(
      fill("--policy tgs --fill-log log", "pace:200 say:trained", "pace:300 say:filled") +
      " >out 2>&1 & tool=$!\n"
      "for i in $(seq 500); do [ $(wc -l <.driver) -gt 20 ] && break; sleep 0.02; done\n"
      "kill -9 $tool\n"
      "for i in $(seq 1000); do grep -q filled log && grep -q trained out && exit 0; sleep 0.02\n"
      "done; exit 1");
  EXPECT_EQ(outcome.code, 0) << place.read("out") << place.read("log");
}

TEST_F(FillCommand, ASignalGoesToBothPrograms) {
  const Outcome outcome = place.shell(
      fill("--policy tgs --json", "pace:0", "pace:0") +
      " >out 2>err & tool=$!\n"
      "for i in $(seq 500); do [ $(wc -l <.driver) -gt 20 ] && break; sleep 0.02; done\n"
      "kill -TERM $tool; wait $tool; exit $?");
  EXPECT_EQ(outcome.code, 143) << place.read("err");
  const Json json = parse_json(lines_of(place.read("out")).back());
  EXPECT_EQ(json.at("interrupted"), true);
  EXPECT_EQ(json.at("filler").at("exit_code"), 143);
}

TEST_F(FillCommand, ANodeHasAFillerOnEachGpuThatIsNamed) {
  const Outcome outcome = place.shell(fill("--policy tgs --gpu 3,1 --json", "pace:3000", "pace:0"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = parse_json(lines_of(outcome.out).back());
  ASSERT_EQ(json.at("gpus").size(), 2U);
  EXPECT_EQ(json["gpus"][1].at("gpu"), "1");
  for (const Json& gpu : json["gpus"]) EXPECT_GT(gpu.at("filler").at("kernels"), 0);
  EXPECT_EQ(json["gpus"][1].at("training").at("kernels"), 0);  // on device 0 of 3,1
  EXPECT_THAT(outcome.err, HasSubstr("filler on GPU 3"));
  EXPECT_THAT(outcome.err, HasSubstr("decision latency on GPU 1"));
}

// Training was not seen there because the gate did not know its GPU: the filler is to blame.
TEST_F(FillCommand, OfAFillerThatLaunchesNothingTheFillerAloneIsNamed) {
  const Outcome outcome = place.shell(fill("--policy tgs --gpu 0,1", "launch:3", "sleep:1"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the filler on GPU 1 launched nothing"));
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("training on GPU 1 launched nothing")));
}

TEST_F(FillCommand, FillersAndGpusThatDoNotFitAreRefused) {
  const auto fault = [&](const std::string& options) {
    const Outcome outcome = place.shell(fill("--policy tgs " + options, "launch:1", "launch:1"));
    EXPECT_EQ(outcome.code, 2) << options;
    return outcome.err;
  };
  EXPECT_THAT(fault("--gpu 0,1,0"), HasSubstr("found 0 twice"));
  EXPECT_THAT(fault("--gpu 0,1,2 --fill true"), HasSubstr("found 2 lines for 3 GPUs"));
}

// Otherwise training's launches are told and go on: only the filler's waits for a verdict.
TEST_F(FillCommand, GatedTrainingWaitsForVerdicts) {
  const auto verdicts = [&](const std::string& option) {
    const Outcome outcome = place.shell(
        fill("--policy tgs --json " + option, "pace:30", "launch:1"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return parse_json(lines_of(outcome.out).back())["decision_latency"]["count"].get<int>();
  };
  EXPECT_GE(verdicts("--gate-training"), 30);
  EXPECT_LT(verdicts(""), 30);
}

}  // namespace
}  // namespace bubblesim::app_test
